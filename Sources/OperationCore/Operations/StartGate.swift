// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// A higher folder implements this class. It is not a protocol, because a reference to a class takes one word in each
// operation. Its methods are called without holding a lock, unless they say otherwise.

/// The conditions, the throttle and the categories of an operation, which decide when its body may begin.
///
/// The object is deliberately not `Sendable`. The object belongs to the state of its operation, and is used under the
/// lock of that operation or by the thread that ended it.
class StartGate {
    /// Whether the body may begin, for an operation that ever had this number of dependencies.
    func isOpen(epoch: Int) -> Bool { true }

    /// Whether the operation asks for the rest after its start delay.
    func isDelayed(epoch: Int) -> Bool { false }

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

extension ManagedOperation.Core {
    /// The gate, unless the body will never run.
    private var gate: StartGate? { machine.ending == nil ? extras?.gate : nil }

    /// Whether only its dependencies keep the body from beginning, or the body will never run.
    var isAdmitted: Bool { gate?.isOpen(epoch: node?.additions ?? 0) ?? true }

    /// Whether only the categories are left, for which the operation asks after its delay.
    var isDelayed: Bool { gate?.isDelayed(epoch: node?.additions ?? 0) ?? false }

    /// Returns whether the body may begin now, and notes that it begins.
    mutating func recordBodyBegins() -> Bool {
        guard machine.enterBody() else { return false }
        extras?.gate?.recordBodyBegins()
        return true
    }
}
