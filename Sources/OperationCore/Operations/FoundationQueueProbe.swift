// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if !canImport(ObjectiveC)
    import Foundation

    /// Finds out whether a Foundation queue holds an operation that it has not started.
    ///
    /// Starting such an operation by hand is a mistake that Foundation on Linux answers by going on to use the operation
    /// after it was freed, and it offers no way to ask. So this looks at its two fields, by reflection, and only where an
    /// operation is started by hand that somebody asked before whether it was ready, as a queue does.
    enum FoundationQueueProbe {
        /// - Parameter mayBeStarting: Whether one counts too which its queue is starting at this moment.
        static func isHeld(_ operation: Operation, mayBeStarting: Bool) -> Bool {
            guard let positions, let mirror = foundationMirror(of: operation) else { return false }
            guard child(of: mirror, at: positions.queue) is Unmanaged<OperationQueue> else { return false }
            return mayBeStarting || "\(child(of: mirror, at: positions.state))" != startingState
        }

        /// The name of the state in which Foundation sees an operation; empty if it cannot be found.
        static func state(of operation: Operation) -> String {
            guard let positions, let mirror = foundationMirror(of: operation) else { return "" }
            return "\(child(of: mirror, at: positions.state))"
        }

        /// The state which a queue gives an operation just before it calls `start()`.
        private static let startingState = "starting"

        /// Where the fields are; nil if a future Foundation has none of these names.
        ///
        /// Found on an operation of our own: reading the other fields of one that is in use would be a race.
        private static let positions: (queue: Int, state: Int)? = {
            guard let mirror = foundationMirror(of: Operation()) else { return nil }
            let labels = mirror.children.map(\.label)
            guard let queue = labels.firstIndex(of: "__queue"), let state = labels.firstIndex(of: "__state") else {
                return nil
            }
            return (queue, state)
        }()

        private static func child(of mirror: Mirror, at position: Int) -> Any {
            mirror.children[mirror.children.index(mirror.children.startIndex, offsetBy: position)].value
        }

        private static func foundationMirror(of operation: Operation) -> Mirror? {
            var mirror: Mirror? = Mirror(reflecting: operation)
            while let current = mirror, current.subjectType != Operation.self { mirror = current.superclassMirror }
            return mirror
        }
    }
#endif
