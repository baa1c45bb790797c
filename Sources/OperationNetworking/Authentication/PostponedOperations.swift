// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A list of operations that pause after their requests fail, until you resume them.
///
/// ```swift
/// let unpaid = PostponedOperations("until it is paid") { attempt in
///     attempt.error.status == 402
/// }
///
/// func albums(of shop: NetworkBase) -> EndpointOperation<[String]> {
///     let operation = shop.get("albums", as: [String].self)
///     operation.postponed = unpaid
///     return operation
/// }
///
/// func didPay(receipt: String) {
///     unpaid.runAll { request in try request.with("X-Receipt", receipt) }
/// }
/// ```
///
/// While an operation is paused, another operation of its queue can start. You can cancel and suspend a paused
/// operation as usual, and the operation's deadline still applies. A failed attempt that leads to a pause does not
/// count toward ``RetryPolicy/maximumAttempts``. If an operation's request body can be read only once, the list does
/// not pause the operation.
public final class PostponedOperations: Sendable {
    /// A closure that changes the request of a paused operation before the operation sends the request again.
    public typealias Change = @Sendable (NetworkRequest) throws -> NetworkRequest

    private struct Entry {
        weak var operation: (any AttemptHost)?
        /// The identity of the operation, by which a search does not retain the operation.
        let identity: ObjectIdentifier
        let answer: @Sendable (AttemptPolicyDecision) -> Void
    }

    /// A phrase that describes the event for which the operations wait, such as "until it is paid".
    public let reason: String
    private let rule: @Sendable (FailedAttempt) -> Bool
    private let state = Locked((entries: ForgettingList<Entry>(), last: UInt64(0)))

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
    public var operations: [any AnyNetworkOperation] {
        state.withLock { $0.entries.elements }.compactMap { $0.operation }
    }

    /// The number of paused operations.
    public var count: Int { state.withLock { $0.entries.count } }

    /// Resumes all paused operations, in the order in which they were paused, so that each operation sends its request
    /// again.
    ///
    /// - Parameter change: A closure that changes the request for the next attempt and for all later attempts of each
    ///   operation. The default is `nil`, which does not change the requests.
    public func runAll(changing change: Change? = nil) {
        for entry in takeAll() { run(entry, change) }
    }

    /// Resumes one paused operation, so that the operation sends its request again.
    ///
    /// - Parameters:
    ///   - operation: The operation to resume.
    ///   - change: A closure that changes the request for the next attempt and for all later attempts of the operation.
    ///     The default is `nil`, which does not change the request.
    /// - Returns: `true` if the list contained the operation; otherwise, `false`.
    @discardableResult
    public func run(_ operation: any AnyNetworkOperation, changing change: Change? = nil) -> Bool {
        guard let entry = take(operation) else { return false }
        run(entry, change)
        return true
    }

    private func run(_ entry: Entry, _ change: Change?) {
        if let change { entry.operation?.networkAttempts.change(with: change) }
        entry.answer(AttemptPolicyDecision(.replay(after: .zero), note: "run again"))
    }

    /// Makes a paused operation fail with the error of its last attempt.
    ///
    /// - Returns: `true` if the list contained the operation; otherwise, `false`.
    @discardableResult
    public func fail(_ operation: any AnyNetworkOperation) -> Bool {
        guard let entry = take(operation) else { return false }
        entry.answer(AttemptPolicyDecision(.fail, note: "given up"))
        return true
    }

    /// Makes each paused operation fail with the error of its last attempt.
    public func failAll() {
        for entry in takeAll() { entry.answer(AttemptPolicyDecision(.fail, note: "given up")) }
    }

    /// Cancels all paused operations.
    public func cancelAll() {
        for entry in takeAll() { entry.operation?.cancel() }
    }

    private func takeAll() -> [Entry] { state.withLock { $0.entries.takeAll() } }

    private func take(_ operation: any AnyNetworkOperation) -> Entry? {
        let identity = ObjectIdentifier(operation)
        return state.withLock { $0.entries.removeFirst { $0.identity == identity } }
    }

    // Calls of the operations.

    func takes(_ attempt: FailedAttempt) -> Bool { rule(attempt) }

    var waitReason: WaitReason { WaitReason(.release, "paused" + (reason.isEmpty ? "" : " \(reason)")) }

    func add(_ operation: any AttemptHost, _ answer: @escaping @Sendable (AttemptPolicyDecision) -> Void) -> UInt64 {
        let entry = Entry(operation: operation, identity: ObjectIdentifier(operation), answer: answer)
        return state.withLock { state in
            state.last += 1
            state.entries.append(entry, id: state.last)
            return state.last
        }
    }

    func remove(_ id: UInt64) {
        state.release { $0.entries.remove(id) }
    }
}

/// An agent that pauses one operation according to the rule of a list.
final class ManualAgent: AttemptPolicy {
    let list: PostponedOperations
    private let place = Locked(QueuePosition<UInt64>())

    init(_ list: PostponedOperations) {
        self.list = list
    }

    func decide(_ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping AttemptPolicyDecision.Handler) {
        guard list.takes(FailedAttempt(report)), report.request?.body.canBeSentAgain != false else {
            return answer(nil)
        }
        let turns = NotificationOrder()
        let id = list.add(host) { decision in turns.second { answer(decision) } }
        if !place.withLock({ $0.take(id) }) { list.remove(id) }
        turns.first { answer(AttemptPolicyDecision(.pause(list.waitReason), note: "\(list.waitReason)")) }
    }

    func forget() {
        if let id = place.withLock({ $0.forget() }) { list.remove(id) }
    }
}

// Set this property before the operation starts.
extension AnyNetworkOperation {
    /// The list that can pause the operation after a failed attempt.
    ///
    /// The default is `nil`, which disables pauses after failed attempts. Set this property before the operation
    /// starts.
    public var postponed: PostponedOperations? {
        get { (networkAttempts.policies?.manual as? ManualAgent)?.list }
        set {
            guard maySet("list of paused operations") else { return }
            networkAttempts.changePolicies { exchange(&$0.manual, with: newValue.map(ManualAgent.init)) }
        }
    }
}

/// The pace at which operations resume after a pause.
public struct PostponementPace: Sendable, Hashable {
    /// The number of operations that resume together, which is at least 1.
    public let count: Int
    /// The interval at which the next ``count`` operations resume.
    public let interval: Duration

    /// Creates a pace from a number of operations that resume together and an interval.
    ///
    /// - Parameters:
    ///   - count: The number of operations that resume together. A value less than 1 is treated as 1.
    ///   - interval: The interval at which the next `count` operations resume.
    public init(_ count: Int, every interval: Duration) {
        self.count = max(count, 1)
        self.interval = max(interval, .zero)
    }

    /// A pace at which 50 operations resume immediately, and 50 more resume every 50 milliseconds.
    public static let standard = PostponementPace(50, every: .milliseconds(50))
    /// A pace at which all operations resume immediately.
    public static let atOnce = PostponementPace(.max, every: .zero)
}
