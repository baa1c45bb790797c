// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Operations that were put aside by a rule of yours, until you run them again.
///
/// ```swift
/// let unpaid = PostponedOperations("until it is paid") { attempt in attempt.error.status == 402 }
///
/// func albums(of shop: NetworkBase) -> EndpointOperation<[String]> {
///     let operation = shop.get("albums", as: [String].self)
///     operation.postponed = unpaid
///     return operation
/// }
///
/// func didPay(receipt: String) throws {
///     try unpaid.runAll { request in try request.with("X-Receipt", receipt) }
/// }
/// ```
///
/// One that is put aside takes no place of its queue, can be cancelled and suspended as ever, and its deadline runs. Being
/// put aside costs no attempt of ``Retry``.
public final class PostponedOperations: Sendable {
    /// Changes a request before it is sent again.
    public typealias Change = @Sendable (NetworkRequest) throws -> NetworkRequest

    private struct Entry {
        weak var operation: (any AttemptHost)?
        let answer: @Sendable (AttemptAnswer) -> Void
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var last: UInt64 = 0
    }

    /// What they wait for, as a part of a sentence.
    public let reason: String
    private let rule: @Sendable (FailedAttempt) -> Bool
    private let state = Locked(State())

    /// Makes an empty list.
    ///
    /// - Parameters:
    ///   - reason: What they wait for, as in "postponed until it is paid".
    ///   - rule: Whether an operation whose attempt failed so is put aside.
    public init(_ reason: String = "", rule: @escaping @Sendable (FailedAttempt) -> Bool) {
        self.reason = reason
        self.rule = rule
    }

    /// Those that are put aside now, in the order in which they came.
    public var operations: [any AnyNetworkOperation] { entries.compactMap { $0.operation } }

    /// How many are put aside now.
    public var count: Int { state.withLock { $0.entries.count } }

    private var entries: [Entry] {
        state.withLock { state in state.entries.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// Sends all again that are put aside, in the order in which they came.
    ///
    /// - Parameters:
    ///   - queue: Lets each go on when it would begin in that queue, and counts there until it ended. Its own queue has to
    ///     have a place for it, too.
    ///   - change: Changes each request: of this attempt, and of those that follow.
    public func runAll(on queue: QueueManager? = nil, changing change: Change? = nil) throws(QueueError) {
        for entry in takeAll() { try run(entry, on: queue, change) }
    }

    /// Sends one of them again; false if it is not put aside.
    @discardableResult
    public func run(
        _ operation: any AnyNetworkOperation, on queue: QueueManager? = nil, changing change: Change? = nil
    ) throws(QueueError) -> Bool {
        let entry = state.withLock { state in
            state.entries.first { $0.value.operation === operation }.flatMap {
                state.entries.removeValue(forKey: $0.key)
            }
        }
        guard let entry else { return false }
        try run(entry, on: queue, change)
        return true
    }

    private func run(_ entry: Entry, on queue: QueueManager?, _ change: Change?) throws(QueueError) {
        guard let operation = entry.operation else { return }
        if let change { operation.networkAttempts.change(with: change) }
        let answer = AttemptAnswer(.replay(after: .zero), note: "run again")
        guard let queue else { return entry.answer(answer) }
        try queue.add(Run(of: operation) { entry.answer(answer) })
    }

    /// Lets all fail that are put aside, with what made them come here.
    public func failAll() {
        for entry in takeAll() { entry.answer(AttemptAnswer(.fail, note: "given up")) }
    }

    /// Cancels all that are put aside.
    public func cancelAll() {
        for entry in takeAll() { entry.operation?.cancel() }
    }

    private func takeAll() -> [Entry] {
        let taken = state.withLock { state in exchange(&state.entries, with: [:]) }
        return taken.sorted { $0.key < $1.key }.map(\.value)
    }

    // What its operations say.

    func takes(_ attempt: FailedAttempt) -> Bool { rule(attempt) }

    var waitReason: WaitReason { WaitReason(.release, "postponed" + (reason.isEmpty ? "" : " \(reason)")) }

    func add(_ operation: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer) -> Void) -> UInt64 {
        state.withLock { state in
            state.last += 1
            state.entries[state.last] = Entry(operation: operation, answer: answer)
            return state.last
        }
    }

    func remove(_ id: UInt64) {
        let entry = state.withLock { $0.entries.removeValue(forKey: id) }
        withExtendedLifetime(entry) {}
    }
}

extension PostponedOperations {
    /// Stands in a queue for an operation that goes on when its turn comes there.
    private final class Run: AsyncOperation<Void, Never>, @unchecked Sendable {
        // Sendable: what it keeps does not change.
        private let operation: any AttemptHost
        private let begin: @Sendable () -> Void

        init(of operation: any AttemptHost, _ begin: @escaping @Sendable () -> Void) {
            self.operation = operation
            self.begin = begin
            super.init()
            name = operation.name.map { "\($0), again" }
            // Whether or not its turn had come.
            whenEnded { [weak self, operation] in
                if let cause = self?.outcome?.cancellationCause { operation.cancel(because: cause) }
            }
        }

        override func main() {
            operation.whenEnded { [weak self] in self?.finish(withResult: ()) }
            begin()
        }
    }
}
