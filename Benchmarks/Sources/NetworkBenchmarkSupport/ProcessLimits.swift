// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The limits of a process.
package enum ProcessLimits {
    /// Raises the limit of file descriptors for this process and its children as far as the system allows.
    package static func raiseFileLimit() {
        var limit = rlimit()
        #if canImport(Glibc)
            let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let kind = RLIMIT_NOFILE
        #endif
        guard getrlimit(kind, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(kind, &limit)
    }
}
