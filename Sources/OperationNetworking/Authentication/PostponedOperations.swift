// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A list of operations that a rule paused, until you run the operations again.
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
/// A paused operation releases the slot in its queue. You can cancel and suspend it as usual, and its deadline still
/// applies. The pause does not count as an attempt of ``Retry``. An operation whose body can be read only once is not
/// paused, and fails as if it had no list.
public final class PostponedOperations: Sendable {
    /// A closure that changes a request before it is sent again.
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

    /// A phrase that describes the event that the operations wait for, such as "until it is paid".
    public let reason: String
    private let rule: @Sendable (FailedAttempt) -> Bool
    private let state = Locked(State())

    /// Creates an empty list.
    ///
    /// - Parameters:
    ///   - reason: The event that the operations wait for. The text completes a sentence that begins with "paused",
    ///     for example "until it is paid". The default is an empty string.
    ///   - rule: A closure that returns whether to pause the operation after a failed attempt.
    public init(_ reason: String = "", rule: @escaping @Sendable (FailedAttempt) -> Bool) {
        self.reason = reason
        self.rule = rule
    }

    /// The paused operations, in the order of their arrival.
    public var operations: [any AnyNetworkOperation] { entries.compactMap { $0.operation } }

    /// The number of paused operations.
    public var count: Int { state.withLock { $0.entries.count } }

    private var entries: [Entry] {
        state.withLock { state in state.entries.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// Sends all paused operations again, in the order of their arrival.
    ///
    /// - Parameters:
    ///   - queue: A queue in which each operation waits for a slot before it continues. The operation holds the slot
    ///     until it ends or is paused again, except while it waits, for example for the network. The operation also
    ///     needs a slot in its own queue. An operation that belongs to this queue continues immediately. The default is
    ///     `nil`, which continues all operations immediately.
    ///   - change: A closure that changes the request of this attempt and of all later attempts. The default is
    ///     `nil`.
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

    /// Sends one of the paused operations again.
    ///
    /// - Parameters:
    ///   - operation: The operation to send.
    ///   - queue: A queue in which the operation waits for a slot before it continues: see ``runAll(on:changing:)``.
    ///     The default is `nil`.
    ///   - change: A closure that changes the request of this attempt and of all later attempts. The default is
    ///     `nil`.
    /// - Returns: A Boolean value that indicates whether the operation was paused.
    /// - Throws: A `QueueError` if the queue does not accept the operation, which then stays paused.
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
        // It would wait for its own slot there, behind its stand-in.
        guard let queue, !operation.isHosted(by: queue) else { return goOn() }
        try queue.add(PostponedRun(of: operation, goOn))
    }

    /// Makes a paused operation fail with the error that caused its pause.
    ///
    /// - Returns: A Boolean value that indicates whether the operation was paused.
    @discardableResult
    public func fail(_ operation: any AnyNetworkOperation) -> Bool {
        guard let entry = take(operation) else { return false }
        entry.answer(AttemptAnswer(.fail, note: "given up"))
        return true
    }

    /// Makes all paused operations fail with the errors that caused their pauses.
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
        // The search is outside the lock, because it may release an operation that has just ended.
        let entries = state.withLock { $0.entries }
        guard let id = entries.first(where: { $0.value.operation === operation })?.key else { return nil }
        return state.withLock { $0.entries.removeValue(forKey: id) }
    }

    private func putBack(_ entries: ArraySlice<Entry>) {
        state.withLock { state in
            for entry in entries { state.entries[entry.id] = entry }
        }
        // An operation that ended meanwhile did not find its entry.
        for entry in entries where entry.operation?.networkAttempts.isEnded ?? true { remove(entry.id) }
    }

    // Calls of the operations.

    func takes(_ attempt: FailedAttempt) -> Bool { rule(attempt) }

    var waitReason: WaitReason { WaitReason(.release, "paused" + (reason.isEmpty ? "" : " \(reason)")) }

    func add(_ operation: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer) -> Void) -> UInt64 {
        // The stand-in of the operation in a queue has done its work.
        (operation.networkAttempts.takeStandIn() as? PostponedRun)?.finish(withResult: ())
        return state.withLock { state in
            state.last += 1
            state.entries[state.last] = Entry(id: state.last, operation: operation, answer: answer)
            return state.last
        }
    }

    func remove(_ id: UInt64) {
        let entry = state.withLock { $0.entries.removeValue(forKey: id) }
        withExtendedLifetime(entry) {}
    }
}

/// An agent that pauses one operation according to the rule of a list.
final class ManualAgent: AttemptPolicy {
    private struct State {
        var place: UInt64?
        var isForgotten = false
    }

    let list: PostponedOperations
    private let state = Locked(State())

    init(_ list: PostponedOperations) {
        self.list = list
    }

    var rank: Int { AttemptRank.hand }

    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer?) -> Void
    ) {
        guard list.takes(FailedAttempt(report)), report.request?.body.canBeSentAgain != false else {
            return answer(nil)
        }
        let turns = TurnTaking()
        let id = list.add(host) { said in turns.second { answer(said) } }
        let isForgotten = state.withLock { state in
            state.place = id
            return state.isForgotten
        }
        if isForgotten { list.remove(id) }
        turns.first { answer(AttemptAnswer(.pause(list.waitReason), note: "\(list.waitReason)")) }
    }

    func forget() {
        let place = state.withLock { state in
            state.isForgotten = true
            return exchange(&state.place, with: nil)
        }
        if let place { list.remove(place) }
    }
}

// Set this property before the operation starts.
extension AnyNetworkOperation {
    /// The list whose rule can pause the operation.
    ///
    /// The default is `nil`, which never pauses the operation in this way. Set this property before the operation
    /// starts.
    public var postponed: PostponedOperations? {
        get { networkAttempts.policy(of: ManualAgent.self)?.list }
        set {
            guard maySet("list of paused operations") else { return }
            networkAttempts.set(newValue.map(ManualAgent.init))
        }
    }
}

/// A pace at which paused operations resume, in the order of their arrival.
public struct PostponementPace: Sendable, Hashable {
    /// The number of operations that resume together, which is at least one.
    public let count: Int
    /// The time between two groups of operations that resume together.
    public let interval: Duration

    /// Creates a pace.
    public init(_ count: Int, every interval: Duration) {
        self.count = max(count, 1)
        self.interval = max(interval, .zero)
    }

    /// A pace that resumes 50 operations immediately, and 50 more every 50 milliseconds.
    public static let standard = PostponementPace(50, every: .milliseconds(50))
    /// A pace at which all operations resume immediately.
    public static let atOnce = PostponementPace(.max, every: .zero)
}
