// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What this process has taken of the processors.
package enum ProcessTime {
    /// User and system time of all its threads so far.
    package static var microseconds: Double { microseconds(ofChildren: false) }

    /// User and system time of the processes that it started and that have ended.
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
