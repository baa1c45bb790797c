// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The processor time of this process and its children.
package enum ProcessTime {
    /// The user and system time of all threads of this process.
    package static var microseconds: Double { microseconds(ofChildren: false) }

    /// The user and system time of the child processes that have ended.
    package static var microsecondsOfChildren: Double { microseconds(ofChildren: true) }

    private static func microseconds(ofChildren: Bool) -> Double {
        var usage = rusage()
        #if canImport(Glibc)
            getrusage(__rusage_who_t((ofChildren ? RUSAGE_CHILDREN : RUSAGE_SELF).rawValue), &usage)
        #else
            getrusage(ofChildren ? RUSAGE_CHILDREN : RUSAGE_SELF, &usage)
        #endif
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
    }
}
