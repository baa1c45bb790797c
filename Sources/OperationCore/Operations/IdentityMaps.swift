// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if DEBUG
    import Foundation

    /// A mode of the tests: each operation that a queue or a group is given is replaced by one that is mapped from it and
    /// converts nothing.
    ///
    /// As a mapped operation behaves like its original, all tests must pass in this mode, too.
    enum IdentityMaps {
        /// How many are put around each operation: the number in the environment variable `OPERATION_MAPS`, 0 without one.
        static let depth = ProcessInfo.processInfo.environment["OPERATION_MAPS"].flatMap { Int($0) } ?? 0
    }
#endif

extension ManagedOperation {
    /// What a queue or a group holds in place of the operation: in the mode of the tests one that is mapped from it.
    @inline(__always) final var held: ManagedOperation {
        #if DEBUG
            (0..<IdentityMaps.depth).reduce(self) { operation, _ in operation.identityMap }
        #else
            self
        #endif
    }
}
