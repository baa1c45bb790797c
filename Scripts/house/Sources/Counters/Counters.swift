// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// With -profile-generate, the compiler links these runtime functions into a program.
@_silgen_name("__llvm_profile_reset_counters") private func resetCounters()
@_silgen_name("__llvm_profile_write_file") private func writeCounters() -> Int32

/// The part of a program whose code coverage is measured.
public enum Measurement {
    /// Resets the counters of executed code.
    public static func start() { resetCounters() }

    /// Writes the counters of the code that was executed since the start, and exits.
    public static func finish() -> Never { _exit(writeCounters()) }
}
