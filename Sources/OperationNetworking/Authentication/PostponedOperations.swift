// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A list of operations that are paused after a failed attempt, until you run them again.
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
/// A paused operation releases its slot in its queue. You can cancel and suspend a paused operation as usual, and its
/// deadline still applies. The pause does not count as an attempt of ``Retry``. If the request body of an operation can
/// be read only once, the list does not pause the operation.
public final class PostponedOperations: Sendable {
    /// A closure that changes the request of a paused operation before the operation sends the request again.
    public typealias Change = @Sendable (NetworkRequest) throws -> NetworkRequest

    private struct Entry {
        let id: UInt64
        weak var operation: (any AttemptHost)?
        let answer: @Sendable (AttemptAnswer) -> Void
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var last: UInt64 = 0
    }

    /// A phrase that describes the event for which the operations wait, such as "until it is paid".
    public let reason: String
    private let rule: @Sendable (FailedAttempt) -> Bool
    private let state = Locked(State())

    /// Creates an empty list with a rule that decides which operations to pause.
    ///
    /// - Parameters:
    ///   - reason: A phrase that describes the event for which the operations wait. The phrase completes a sentence
    ///     that begins with "paused", for example "until it is paid". The default is an empty string.
    ///   - rule: A closure that returns whether to pause an operation after a failed attempt.
    public init(_ reason: String = "", rule: @escaping @Sendable (FailedAttempt) -> Bool) {
        self.reason = reason
        self.rule = rule
    }

    /// The paused operations, in the order in which they were paused.
    public var operations: [any AnyNetworkOperation] { entries.compactMap { $0.operation } }

    /// The number of paused operations.
    public var count: Int { state.withLock { $0.entries.count } }

    private var entries: [Entry] {
        state.withLock { state in state.entries.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// Resumes all paused operations, in the order in which they were paused, so that each operation sends its request
    /// again.
    ///
    /// - Parameters:
    ///   - queue: A queue in which each operation waits for a slot before it continues, in addition to the slot in its
    ///     own queue. The operation keeps the slot until it ends or is paused again. During a wait, for example for the
    ///     network, the operation releases the slot. If an operation is already in this queue, it continues
    ///     immediately. The default is `nil`, which resumes all operations immediately.
    ///   - change: A closure that changes the request for the next attempt and for all later attempts of each
    ///     operation. The default is `nil`.
    /// - Throws: A `QueueError` if the queue does not accept an operation. That operation and all later operations stay
    ///   paused.
    public func runAll(on queue: QueueManager? = nil, changing change: Change? = nil) throws(QueueError) {
        var entries = takeAll()[...]
        do throws(QueueError) {
            while let entry = entries.first {
                try run(entry, on: queue, change)
                entries.removeFirst()
            }
        } catch {
            putBack(entries)
            throw error
        }
    }

    /// Resumes one paused operation, so that the operation sends its request again.
    ///
    /// - Parameters:
    ///   - operation: The operation to resume.
    ///   - queue: A queue in which the operation waits for a slot before it continues. For details, see
    ///     ``runAll(on:changing:)``. The default is `nil`, which resumes the operation immediately.
    ///   - change: A closure that changes the request for the next attempt and for all later attempts of each
    ///     operation. The default is `nil`.
    /// - Returns: `true` if the list contained the operation; otherwise, `false`.
    /// - Throws: A `QueueError` if the queue does not accept the operation. The operation then stays paused.
    @discardableResult
    public func run(
        _ operation: any AnyNetworkOperation, on queue: QueueManager? = nil, changing change: Change? = nil
    ) throws(QueueError) -> Bool {
        guard let entry = take(operation) else { return false }
        do throws(QueueError) {
            try run(entry, on: queue, change)
        } catch {
            putBack([entry])
            throw error
        }
        return true
    }

    private func run(_ entry: Entry, on queue: QueueManager?, _ change: Change?) throws(QueueError) {
        guard let operation = entry.operation else { return }
        let goOn = { @Sendable [weak operation] in
            if let change { operation?.networkAttempts.change(with: change) }
            entry.answer(AttemptAnswer(.replay(after: .zero), note: "run again"))
        }
        // Otherwise, the operation would wait in that queue behind its own placeholder.
        guard let queue, !operation.isHosted(by: queue) else { return goOn() }
        try queue.add(PostponedRun(of: operation, goOn))
    }

    /// Makes a paused operation fail with the error of its last attempt.
    ///
    /// - Returns: `true` if the list contained the operation; otherwise, `false`.
    @discardableResult
    public func fail(_ operation: any AnyNetworkOperation) -> Bool {
        guard let entry = take(operation) else { return false }
        entry.answer(AttemptAnswer(.fail, note: "given up"))
        return true
    }

    /// Makes each paused operation fail with the error of its last attempt.
    public func failAll() {
        for entry in takeAll() { entry.answer(AttemptAnswer(.fail, note: "given up")) }
    }

    /// Cancels all paused operations.
    public func cancelAll() {
        for entry in takeAll() { entry.operation?.cancel() }
    }

    private func takeAll() -> [Entry] {
        let taken = state.withLock { state in exchange(&state.entries, with: [:]) }
        return taken.sorted { $0.key < $1.key }.map(\.value)
    }

    private func take(_ operation: any AnyNetworkOperation) -> Entry? {
        // The search does not hold the lock, because it may release an operation that has just ended.
        let entries = state.withLock { $0.entries }
        guard let id = entries.first(where: { $0.value.operation === operation })?.key else { return nil }
        return state.withLock { $0.entries.removeValue(forKey: id) }
    }

    private func putBack(_ entries: ArraySlice<Entry>) {
        state.withLock { state in
            for entry in entries { state.entries[entry.id] = entry }
        }
        // An operation that ended in the meantime did not find its entry.
        for entry in entries where entry.operation?.networkAttempts.isEnded ?? true { remove(entry.id) }
    }

    // Calls of the operations.

    func takes(_ attempt: FailedAttempt) -> Bool { rule(attempt) }

    var waitReason: WaitReason { WaitReason(.release, "paused" + (reason.isEmpty ? "" : " \(reason)")) }

    func add(_ operation: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer) -> Void) -> UInt64 {
        // The placeholder of the operation in a queue is no longer needed.
        (operation.networkAttempts.takeStandIn() as? PostponedRun)?.finish(withResult: ())
        return state.withLock { state in
            state.last += 1
            state.entries[state.last] = Entry(id: state.last, operation: operation, answer: answer)
            return state.last
        }
    }

    func remove(_ id: UInt64) {
        state.release { $0.entries.removeValue(forKey: id) }
    }
}

/// An agent that pauses one operation according to the rule of a list.
final class ManualAgent: AttemptPolicy {
    let list: PostponedOperations
    private let place = Locked(LinePlace<UInt64>())

    init(_ list: PostponedOperations) {
        self.list = list
    }

    var rank: Int { AttemptRank.hand }

    func decide(_ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping AttemptAnswer.Handler) {
        guard list.takes(FailedAttempt(report)), report.request?.body.canBeSentAgain != false else {
            return answer(nil)
        }
        let turns = TurnTaking()
        let id = list.add(host) { said in turns.second { answer(said) } }
        if !place.withLock({ $0.take(id) }) { list.remove(id) }
        turns.first { answer(AttemptAnswer(.pause(list.waitReason), note: "\(list.waitReason)")) }
    }

    func forget() {
        if let id = place.withLock({ $0.forget() }) { list.remove(id) }
    }
}

// Set this property before the operation starts.
extension AnyNetworkOperation {
    /// The list that can pause the operation after a failed attempt.
    ///
    /// The default is `nil`, which disables such pauses. Set this property before the operation starts.
    public var postponed: PostponedOperations? {
        get { networkAttempts.policy(of: ManualAgent.self)?.list }
        set {
            guard maySet("list of paused operations") else { return }
            networkAttempts.set(newValue.map(ManualAgent.init))
        }
    }
}

/// The pace at which operations resume after a pause.
public struct PostponementPace: Sendable, Hashable {
    /// The number of operations that resume together, which is at least 1.
    public let count: Int
    /// The time after which the next ``count`` operations resume.
    public let interval: Duration

    /// Creates a pace from a number of operations that resume together and an interval.
    ///
    /// - Parameters:
    ///   - count: The number of operations that resume together. Values less than 1 count as 1.
    ///   - interval: The time after which the next operations resume.
    public init(_ count: Int, every interval: Duration) {
        self.count = max(count, 1)
        self.interval = max(interval, .zero)
    }

    /// A pace that resumes 50 operations immediately and 50 more operations every 50 milliseconds.
    public static let standard = PostponementPace(50, every: .milliseconds(50))
    /// A pace that resumes all operations immediately.
    public static let atOnce = PostponementPace(.max, every: .zero)
}
