// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// A class in a higher folder inherits from this class. A reference to a protocol would take two words in each
// operation. The methods are called without holding a lock, unless they say otherwise.

/// The conditions, the throttle and the categories of an operation, which decide when its body may begin.
///
/// The object is deliberately not `Sendable`. The object belongs to the state of its operation, and is used under the
/// lock of that operation or by the thread that ended it.
class StartGate {
    enum State {
        /// The body may begin.
        case open
        /// The operation asks for its categories after its start delay.
        case delayed
        /// The operation requests its categories as soon as it has a slot.
        case called
        /// The body must wait for an admission.
        case closed
    }

    /// Returns the state for an operation that ever had this number of dependencies.
    func state(epoch: Int) -> State { .open }

    func recordBodyBegins() {}

    /// The part that can still be read after the operation has ended.
    var retained: StartGate? { nil }

    /// Gives back what was granted, when the operation has ended or is being freed.
    func close() {}

    // The methods below are called without holding a lock.

    /// Asks for admission on the thread that starts the operation, on which its body may run.
    func seek(atStartOf operation: ManagedOperation) {}

    /// Gives back what was granted if a dependency was added before the start, or if the body will not run, and returns
    /// whether there was anything.
    func giveBackIfOutdated(_ operation: ManagedOperation) -> Bool { false }

    /// Returns the operations for which the operation waits here, each time a list of which one must end.
    func needs(of operation: ManagedOperation, atMost most: Int) -> [[ManagedOperation]] { [] }
}
