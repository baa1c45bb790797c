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
/// put aside costs no attempt of ``Retry``. One whose body can be read only once is not put aside: it fails as without a list.
public final class PostponedOperations: Sendable {
    /// Changes a request before it is sent again.
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
    ///   - queue: Lets each go on when it would begin in that queue, and counts there until it ended or is put aside again,
    ///     but not while it waits for something. Its own queue has to have a place for it, too; one that is in that very
    ///     queue goes on at once, as without this.
    ///   - change: Changes each request: of this attempt, and of those that follow.
    /// - Throws: If the queue takes no more. Those that it did not take stay put aside.
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

    /// Sends one of them again; false if it is not put aside.
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
        // Its own place is the one for which it would wait there, behind whoever stands for it.
        guard let queue, !operation.isHosted(by: queue) else { return goOn() }
        try queue.add(PostponedRun(of: operation, goOn))
    }

    /// Lets one fail with what made it come here; false if it is not put aside.
    @discardableResult
    public func fail(_ operation: any AnyNetworkOperation) -> Bool {
        guard let entry = take(operation) else { return false }
        entry.answer(AttemptAnswer(.fail, note: "given up"))
        return true
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

    private func take(_ operation: any AnyNetworkOperation) -> Entry? {
        // Looked for outside of the lock, where an operation may go that has just ended.
        let entries = state.withLock { $0.entries }
        guard let id = entries.first(where: { $0.value.operation === operation })?.key else { return nil }
        return state.withLock { $0.entries.removeValue(forKey: id) }
    }

    private func putBack(_ entries: ArraySlice<Entry>) {
        state.withLock { state in
            for entry in entries { state.entries[entry.id] = entry }
        }
        // Who ended meanwhile looked for its place in vain.
        for entry in entries where entry.operation?.networkAttempts.isEnded ?? true { remove(entry.id) }
    }

    // What its operations say.

    func takes(_ attempt: FailedAttempt) -> Bool { rule(attempt) }

    var waitReason: WaitReason { WaitReason(.release, "postponed" + (reason.isEmpty ? "" : " \(reason)")) }

    func add(_ operation: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer) -> Void) -> UInt64 {
        // Whoever stands for it in a queue has done so: it takes no place there, either.
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

/// Puts one operation aside where the rule of a list says so.
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
        turns.first { answer(AttemptAnswer(.park(list.waitReason), note: "\(list.waitReason)")) }
    }

    func forget() {
        let place = state.withLock { state in
            state.isForgotten = true
            return exchange(&state.place, with: nil)
        }
        if let place { list.remove(place) }
    }
}

// To be set before the start.
extension AnyNetworkOperation {
    /// Where the operation is put aside if the list's rule says so; nowhere if nil, as from the start.
    public var postponed: PostponedOperations? {
        get { networkAttempts.policy(of: ManualAgent.self)?.list }
        set {
            guard maySet("list (postponed)") else { return }
            networkAttempts.set(newValue.map(ManualAgent.init))
        }
    }
}

/// How fast those go on that were postponed: in the order in which they came, so many at a time.
public struct PostponementPace: Sendable, Hashable {
    /// How many go on at once; at least one.
    public let count: Int
    /// How long after these the next ones go.
    public let interval: Duration

    /// Makes a pace.
    public init(_ count: Int, every interval: Duration) {
        self.count = max(count, 1)
        self.interval = max(interval, .zero)
    }

    /// 50 at once, and 50 more every 50 milliseconds: a thousand a second.
    public static let standard = PostponementPace(50, every: .milliseconds(50))
    /// All at once.
    public static let atOnce = PostponementPace(.max, every: .zero)
}
