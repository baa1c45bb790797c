// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A list of operations that are paused after a failed attempt until you resume them.
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
/// count toward ``RetryPolicy/maximumAttempts``. An operation is not paused if its request body can be read only once
/// and was already read. If you cancel the network task of an operation, the operation is canceled and not paused.
public final class PostponedOperations: Sendable {
    /// A closure that changes the request of a paused operation before the operation sends the request again.
    ///
    /// If the closure moves the request from the origin of the operation's ``NetworkBase`` to another origin, the
    /// operation removes the headers of the base from the request. An authenticator then adds its credential only if
    /// ``AuthenticationOptions/origins`` contains the other origin.
    public typealias Change = @Sendable (NetworkRequest) throws -> NetworkRequest

    private typealias Entry = WaitingOperation<AttemptPolicyDecision>

    /// A phrase that describes the event for which the operations wait, such as "until it is paid".
    package let reason: String
    private let rule: @Sendable (FailedAttempt) -> Bool
    /// A gate that never opens.
    private let gate = Locked(GateMachine<Entry>(pace: .atOnce, now: OperationInstant(offset: .zero)))

    /// Creates an empty list with a rule that decides which operations to pause.
    ///
    /// - Parameters:
    ///   - reason: A phrase that describes the event for which the operations wait. The phrase completes a sentence
    ///     that begins with "paused", for example "until it is paid". The default is an empty string.
    ///   - rule: A closure that returns whether to pause an operation after a failed attempt. An operation can call the
    ///     closure on any thread.
    public init(_ reason: String = "", rule: @escaping @Sendable (FailedAttempt) -> Bool) {
        self.reason = reason
        self.rule = rule
    }

    /// The paused operations, in the order in which they were paused.
    public var operations: [any AnyNetworkOperation] { gate.withLock { $0.waiters }.compactMap(\.operation) }

    /// The number of paused operations.
    package var count: Int { gate.withLock { $0.count } }

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
        entry.end(AttemptPolicyDecision(.replay(after: .zero), note: "run again"))
    }

    /// Makes a paused operation fail with the error of its last attempt.
    ///
    /// - Returns: `true` if the list contained the operation; otherwise, `false`.
    @discardableResult
    public func fail(_ operation: any AnyNetworkOperation) -> Bool {
        guard let entry = take(operation) else { return false }
        entry.end(AttemptPolicyDecision(.fail, note: "given up"))
        return true
    }

    /// Makes each paused operation fail with the error of its last attempt.
    public func failAll() {
        for entry in takeAll() { entry.end(AttemptPolicyDecision(.fail, note: "given up")) }
    }

    /// Cancels all paused operations.
    public func cancelAll() {
        for entry in takeAll() { entry.operation?.cancel() }
    }

    private func takeAll() -> [Entry] { gate.withLock { $0.takeAll() } }

    private func take(_ operation: any AnyNetworkOperation) -> Entry? {
        gate.withLock { $0.leave { $0.belongs(to: operation) } }
    }

    // Calls of the operations.

    func takes(_ attempt: FailedAttempt) -> Bool { rule(attempt) }

    var waitReason: WaitReason { WaitReason(.release, "paused" + (reason.isEmpty ? "" : " \(reason)")) }

    /// Adds an operation, and returns a closure that removes the operation if it is still in the list.
    func add(
        _ operation: any AttemptOwner, _ answer: @escaping @Sendable (AttemptPolicyDecision) -> Void
    ) -> @Sendable () -> Void {
        let ticket = gate.withLock {
            $0.enter(Entry(operation, answer), now: OperationInstant(offset: .zero)) ?? 0
        }
        return { [self] in gate.release { $0.leave(ticket) } }
    }
}

/// An operation that waits at a gate until the user ends its wait.
struct WaitingOperation<End>: Sendable {
    weak var operation: (any AttemptOwner)?
    /// The identity of the operation, by which a search does not retain the operation.
    private let identity: ObjectIdentifier
    let end: @Sendable (End) -> Void

    init(_ operation: any AttemptOwner, _ end: @escaping @Sendable (End) -> Void) {
        (self.operation, self.end) = (operation, end)
        identity = ObjectIdentifier(operation)
    }

    /// Returns whether this is the wait of an operation.
    func belongs(to operation: any AnyNetworkOperation) -> Bool { identity == ObjectIdentifier(operation) }
}

/// An agent that pauses one operation according to the rule of a list.
final class ManualAgent: AttemptPolicy, @unchecked Sendable {
    // Sendable: all mutable state is behind a lock.

    let list: PostponedOperations
    private let wait = GateWait()

    init(_ list: PostponedOperations) {
        self.list = list
    }

    override func decide(_ attempt: FailedAttempt, for owner: any AttemptOwner, _ answer: @escaping PolicyAnswer) {
        guard list.takes(attempt), attempt.request?.body.canBeSentNow != false else {
            return answer(nil)
        }
        let order = NotificationOrder()
        let leave = list.add(owner) { decision in order.second { answer(decision) } }
        wait.begin(order, leave: leave) {
            answer(AttemptPolicyDecision(.pause(list.waitReason), note: "\(list.waitReason)"))
        }
    }

    override func forget() { wait.end() }
}

// Set this property before the operation starts.
extension AnyNetworkOperation {
    /// The list of paused operations, with a rule that decides whether to pause this operation after a failed attempt.
    ///
    /// The default is `nil`, which disables pauses after failed attempts. Set this property before the operation
    /// starts.
    public var postponed: PostponedOperations? {
        get { (networkAttempts.policies?[.manual] as? ManualAgent)?.list }
        set {
            guard maySet("list of paused operations") else { return }
            networkAttempts.changePolicies { exchange(&$0[.manual], with: newValue.map(ManualAgent.init)) }
        }
    }
}
