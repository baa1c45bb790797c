// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if DEBUG
    import Foundation

    /// A mode of the tests in which each operation that is given to a queue or group, or that an edge names, is replaced
    /// by one that is mapped from it and converts nothing.
    ///
    /// A mapped operation behaves like its original, so all tests must pass in this mode, too.
    enum IdentityMaps {
        /// The number of maps around each operation: that in the environment variable `OPERATION_MAPS`, or 0.
        static let depth = ProcessInfo.processInfo.environment["OPERATION_MAPS"].flatMap { Int($0) } ?? 0
    }
#endif

extension ManagedOperation {
    /// The object that a queue or group holds for the operation, or that an edge names: in the mode of the tests a mapped
    /// one, else itself.
    @inline(__always) final var held: ManagedOperation {
        #if DEBUG
            (0..<IdentityMaps.depth).reduce(self) { operation, _ in operation.identityMap }
        #else
            self
        #endif
    }
}
