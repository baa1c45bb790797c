// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Takes in the body of one response: the side without types.
///
/// It cannot be subclassed directly; subclass ``ResponseCollector``.
open class AnyResponseCollector: @unchecked Sendable {
    // Sendable: the calls for one response never overlap, whichever thread they come from; the last is `finish`.

    init() {}

    /// Whether it has nothing if no byte was received in this transfer.
    var mayBeEmpty: Bool { true }

    /// The first bytes of what was collected, if it is kept in memory; asked for after all bytes.
    func prefix(_ count: Int) -> Data? { nil }

    /// Takes the next bytes, which are there only for the length of the call.
    ///
    /// Called on the session's thread: it must not block. What needs time calls `flow.hold()`, and `proceed()` later.
    open func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {}
}

/// Takes in the body of one response and makes what a ``NetworkOperation`` evaluates.
///
/// There is one for `Data` and one for temporary files (`URL`). Make one of your own for a `TaskResult` of your own, and
/// return it from `makeCollector(for:)`.
open class ResponseCollector<TaskResult>: AnyResponseCollector, @unchecked Sendable {
    // Sendable: it adds no state.

    /// Makes a collector for one response.
    public override init() {
        super.init()
    }

    /// Gives what was collected; called once, after all bytes, on a thread that may block.
    open func finish() throws -> TaskResult {
        fatalError("\(type(of: self)) must override finish(), and must not call super.finish().")
    }
}
