// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// The functions of the runtime that -profile-generate links to a program.
@_silgen_name("__llvm_profile_reset_counters") private func resetCounters()
@_silgen_name("__llvm_profile_write_file") private func writeCounters() -> Int32

/// The part of a program whose code coverage is measured.
public enum Measurement {
    /// Forgets what the program has executed so far.
    public static func start() { resetCounters() }

    /// Writes what the program has executed since the start, and exits.
    public static func finish() -> Never { _exit(writeCounters()) }
}
