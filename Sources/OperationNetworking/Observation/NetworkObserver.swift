// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

/// An object or a value that receives the events of network operations, such as a log, a metrics collector or a tracer.
///
/// ```swift
/// final class Counting: NetworkObserver {
///     func observe(_ event: NetworkEvent) {
///         if event.kind == .attemptEnded { print(event) }
///     }
/// }
///
/// func watch(_ shop: inout NetworkBase) { shop.observers.append(Counting()) }
/// ```
///
/// Add an observer to an operation with ``AnyNetworkOperation/addNetworkObserver(_:)``, to the operations of a service
/// with ``NetworkBase/observers``, or to the operations in a group with `GroupOperation.addNetworkObserver(_:)`. If you
/// add the same object or the same ``NetworkLog`` more than once, the observer still receives each event only once.
///
/// - Order: An operation delivers its events one after another, in the order in which they occurred. Different
///   operations can deliver events at the same time.
/// - Thread: An operation calls the observer on the thread where an event occurs, which can be a thread that all tasks
///   of a session share. The observer must return quickly and must not block the thread.
/// - Locks: The operation holds no lock during the call, so the observer can call any method of the operation, such as
///   `cancel()`. The operation delivers the resulting events after the observer returns.
/// - Pairs: One `operationEnded` follows each `operationBegan`, one `attemptEnded` follows each `attemptBegan`, and one
///   `hopEnded` follows each `hopBegan`, even after a cancellation. An operation that ends before it begins sends only
///   `operationEnded`.
/// - Lifetime: An event has no strong reference to its operation. An operation keeps strong references to its observers
///   until it has delivered its last event.
/// - Cost: An operation without observers does not create events.
public protocol NetworkObserver: Sendable {
    /// Handles an event of a network operation.
    func observe(_ event: NetworkEvent)
}

extension AnyNetworkOperation {
    /// Adds an observer that receives the events of the operation.
    ///
    /// Call this method before the operation starts. Otherwise, the observer receives no events.
    public func addNetworkObserver(_ observer: any NetworkObserver) {
        if state == .notStarted, networkAttempts.add(observer, of: self) { return }
        OperationDiagnostics.report(
            .timing, by: self, "An observer was added after the start and receives no events. Add it before the start.")
    }

    /// Removes an observer from the operation.
    ///
    /// After this call, the observer receives at most one more event, which another thread might already be delivering.
    /// To remove a ``NetworkLog``, pass a copy of the log with the same settings. The method does not remove observers
    /// of other value types.
    public func removeNetworkObserver(_ observer: any NetworkObserver) { networkAttempts.remove(observer) }
}

/// Delivers the events of one operation to its observers, using the state in ``ObservationMachine``.
///
/// One of the threads that record events delivers them, including events that other threads record in the meantime.
/// Deliveries never overlap, and an observer that acts on the operation is not called recursively.
final class NetworkObservation: AttemptObservation {
    private struct State {
        var machine = ObservationMachine()
        var observers: [any NetworkObserver] = []
        var name: String?
        var events = DeliveryQueue<NetworkEvent>()
        var isOver = false
    }

    private static let lastNumber = Atomic<UInt64>(0)

    let number = NetworkObservation.lastNumber.add(1, ordering: .relaxed).newValue
    let object: ObjectIdentifier
    // Sendable: written once, in init. Loading a weak reference is atomic.
    private(set) nonisolated(unsafe) weak var operation: (any AnyNetworkOperation)?
    private let state = Locked(State())

    init(of operation: any AnyNetworkOperation) {
        self.operation = operation
        object = ObjectIdentifier(operation)
    }

    /// The last request that was prepared or sent.
    var lastRequest: NetworkRequest? { state.withLock { $0.machine.request } }

    /// Adds an observer that is not present yet, and returns `false` if the operation has already begun.
    func add(_ observer: any NetworkObserver) -> Bool {
        state.withLock { state in
            guard !state.isOver, !state.machine.hasBegun else { return false }
            if !state.observers.contains(where: { Self.isSame($0, observer) }) { state.observers.append(observer) }
            return true
        }
    }

    /// Removes an observer, which receives no more events except one that is being delivered now.
    func remove(_ observer: any NetworkObserver) {
        // The observer belongs to the app, so it is released without holding the lock.
        state.release { state in
            let left = state.observers
            state.observers = left.filter { !Self.isSame($0, observer) }
            return left
        }
    }

    /// Returns whether both values are the same object, or copies of one log with the same output.
    ///
    /// Other values are not compared, because a comparison would call code of the app.
    static func isSame(_ left: any NetworkObserver, _ right: any NetworkObserver) -> Bool {
        let (one, other) = (type(of: left) as Any.Type, type(of: right) as Any.Type)
        guard one == other else { return false }
        if one is AnyClass { return left as AnyObject === right as AnyObject }
        guard let left = left as? NetworkLog, let right = right as? NetworkLog else { return false }
        return left.writesAs(right)
    }

    /// Delivers the events of a step now, or after the events that are being delivered.
    ///
    /// - Parameter operation: The operation of the step, which may be about to be deallocated.
    func record(_ step: AttemptStep, _ number: Int, by operation: any AnyNetworkOperation) {
        // The name and the clock may call code of the app.
        let name = state.withLock({ $0.name }) ?? operation.displayName
        let now = operation.clock.now
        // The last request may hold the last reference to an object of the app, so it is released without holding the
        // lock.
        let (tells, left) = state.withLock { state in
            let left = state.machine.request
            if state.name == nil { state.name = name }
            let events = state.machine.record(step, number, at: now) { kind, attempt, hop, moment in
                NetworkEvent(kind, attempt, hop, moment, by: self, name)
            }
            var tells = false
            for event in events where state.events.append(event) { tells = true }
            return (tells, left)
        }
        extendLifetime(left)
        guard tells else { return }
        while let (event, observers) = next() {
            for observer in observers { observer.observe(event) }
        }
    }

    private func next() -> (NetworkEvent, [any NetworkObserver])? {
        // The observers belong to the app, so they are released without holding the lock.
        var left: [any NetworkObserver] = []
        return state.withLock { state in
            guard let event = state.events.next() else { return nil }
            guard event.kind == .operationEnded else { return (event, state.observers) }
            state.isOver = true
            swap(&left, &state.observers)
            return (event, left)
        }
    }
}

extension NetworkAttempts {
    /// Adds an observer, and returns `false` if the operation has begun or ended, so that the observer would miss
    /// events.
    @discardableResult
    package func add(_ observer: any NetworkObserver, of operation: any AnyNetworkOperation) -> Bool {
        let known = state.withLock { $0.observation }
        let made = known ?? NetworkObservation(of: operation)
        let observation = state.withLock { state -> (any AttemptObservation)? in
            // Another thread may have started or canceled the operation since it was checked, or may have added an
            // observation.
            guard state.machine.phase == .idle else { return nil }
            if state.observation == nil { state.observation = made }
            isObserved.store(true, ordering: .relaxed)
            return state.observation
        }
        return (observation as? NetworkObservation)?.add(observer) ?? false
    }

    /// Removes an observer.
    func remove(_ observer: any NetworkObserver) {
        (state.withLock { $0.observation } as? NetworkObservation)?.remove(observer)
    }
}

/// The state that determines the events for the steps of one operation, as a value that receives the time.
///
/// Several threads report steps, and read the clock before they do. No event has a time before the time of the previous
/// event. A late step of an attempt that is over causes no event. When an outer part ends, its open inner parts end
/// first.
package struct ObservationMachine: Sendable {
    private struct Attempt: Sendable {
        let number: Int
        let began: OperationInstant
        var sent: OperationInstant?
        var hops = 0
        var isInHop = false
        /// The response headers of the current hop, or `nil` until they arrive.
        var hopHead: ResponseHead?
        var head: ResponseHead?
        var metrics: TransferMetrics?
        var isHeld = false
        var isBodySent = false
        /// Whether the headers of the final response were reported, for the current hop if there is one.
        var hasResponded = false
    }

    private var began: OperationInstant?
    private var last = OperationInstant(offset: .seconds(-Int64.max))
    private(set) var request: NetworkRequest?
    private var lastHead: ResponseHead?
    private var attempt: Attempt?
    private var lastAttempt = 0
    private var isEnded = false

    /// Whether the start of the operation was reported.
    ///
    /// An observer that is added later is too late.
    var hasBegun: Bool { began != nil }

    /// Creates an event from a kind, an attempt, a hop and a time.
    package typealias Make = (NetworkEvent.Kind, Int, Int, OperationInstant) -> NetworkEvent

    package init() {}

    /// Returns the events for a step, in their order.
    package mutating func record(
        _ step: AttemptStep, _ number: Int, at now: OperationInstant, _ make: Make
    ) -> [NetworkEvent] {
        guard !isEnded else { return [] }
        let now = max(now, last)
        last = now
        var events: [NetworkEvent] = []
        func add(_ kind: NetworkEvent.Kind, _ fill: (inout NetworkEvent) -> Void = { _ in }) {
            events.append(event(kind, now, make, fill))
        }
        switch step {
        case .started:
            guard began == nil else { return [] }
            began = now
            add(.operationBegan)
        case .suspended(let isSuspended):
            guard began != nil else { return [] }
            add(isSuspended ? .suspended : .resumed)
        case .decided(let answer):
            guard attempt == nil, number == lastAttempt, number > 0 else { return [] }
            add(.decided) { $0.decision = answer }
        case .begins: begin(number, now, make, &events)
        case .ended(let error, let cause, let received):
            let ending: NetworkEvent.Ending = error != nil ? .failure : cause != nil ? .cancelled : .success
            if attempt != nil {
                // The operation may have ended independently in the middle of the attempt.
                self.end(ending, now, make, &events) { event in
                    (event.error, event.cancellationCause, event.receivedBytes) = (error, cause, received)
                }
            }
            isEnded = true
            add(.operationEnded) { ($0.ending, $0.error, $0.cancellationCause) = (ending, error, cause) }
        case .held, .sends, .hop, .takenBack, .evaluated, .failed:
            guard attempt?.number == number else { return [] }
            recordInAttempt(step, now, make, &events)
        }
        return events
    }

    private mutating func begin(_ number: Int, _ now: OperationInstant, _ make: Make, _ events: inout [NetworkEvent]) {
        if attempt?.number == number {
            // After a wait or a long suspension, the request is created again.
            guard attempt?.isHeld == true else { return }
            attempt?.isHeld = false
            return events.append(event(.wentOn, now, make))
        }
        guard number > lastAttempt, hasBegun else { return }
        if attempt != nil { end(.takenBack, now, make, &events) }
        attempt = Attempt(number: number, began: now)
        lastAttempt = number
        events.append(event(.attemptBegan, now, make))
    }

    private mutating func recordInAttempt(
        _ step: AttemptStep, _ now: OperationInstant, _ make: Make, _ events: inout [NetworkEvent]
    ) {
        switch step {
        case .held(let reason, let request):
            self.request = request ?? self.request
            attempt?.isHeld = true
            events.append(event(.held, now, make) { $0.waitReason = reason })
        case .sends(let request):
            self.request = request
            attempt?.sent = now
            events.append(event(.sending, now, make))
        case .hop(.begins(let request)):
            endHop(now, make, &events)
            self.request = request
            attempt?.hops += 1
            attempt?.isInHop = true
            attempt?.hopHead = nil
            attempt?.metrics = nil
            attempt?.isBodySent = false
            attempt?.hasResponded = false
            events.append(event(.hopBegan, now, make))
        case .hop(.left(let head)):
            guard attempt?.isInHop == true else { return }
            attempt?.hopHead = head
            events.append(event(.leftBehind, now, make) { $0.head = head })
        case .hop(.ended): endHop(now, make, &events)
        case .hop(.measured(let metrics)):
            attempt?.metrics = metrics
            endHop(now, make, &events)
        case .hop(.bodySent):
            guard attempt?.isBodySent == false else { return }
            attempt?.isBodySent = true
            events.append(event(.bodySent, now, make))
        case .takenBack: end(.takenBack, now, make, &events)
        case .hop(.received(let head)):
            attempt?.head = head
            // A local file has its own headers, which arrive after the headers of its last response were reported.
            guard attempt?.hasResponded == false else { return }
            attempt?.hasResponded = true
            attempt?.hopHead = head
            events.append(event(.responded, now, make))
        case .evaluated(let body, let count):
            end(.success, now, make, &events) { ($0.responseBody, $0.receivedBytes) = (body, count) }
        case .failed(let error, let count):
            end(error.code == .cancelled ? .cancelled : .failure, now, make, &events) { event in
                (event.error, event.responseBody, event.receivedBytes) = (error, error.bodyPrefix, count)
            }
        case .started, .begins, .decided, .suspended, .ended: break
        }
    }

    /// Ends the current hop.
    private mutating func endHop(_ now: OperationInstant, _ make: Make, _ events: inout [NetworkEvent]) {
        guard let attempt, attempt.isInHop else { return }
        events.append(event(.hopEnded, now, make) { $0.head = attempt.hopHead })
        self.attempt?.isInHop = false
    }

    private mutating func end(
        _ ending: NetworkEvent.Ending, _ now: OperationInstant, _ make: Make, _ events: inout [NetworkEvent],
        _ fill: (inout NetworkEvent) -> Void = { _ in }
    ) {
        endHop(now, make, &events)
        let ended = event(.attemptEnded, now, make) { event in
            event.ending = ending
            fill(&event)
        }
        events.append(ended)
        lastHead = attempt?.head
        attempt = nil
    }

    private func event(
        _ kind: NetworkEvent.Kind, _ now: OperationInstant, _ make: Make,
        _ fill: (inout NetworkEvent) -> Void = { _ in }
    ) -> NetworkEvent {
        var event = make(kind, attempt?.number ?? lastAttempt, attempt?.hops ?? 0, now)
        event.sinceOperationBegan = began?.duration(to: now)
        event.sinceAttemptBegan = attempt?.began.duration(to: now)
        event.sinceSending = attempt?.sent?.duration(to: now)
        event.request = request
        event.head = attempt == nil ? lastHead : attempt?.head
        event.metrics = attempt?.metrics
        fill(&event)
        return event
    }
}

extension AnyNetworkOperation {
    /// The last request as it was sent to the server, as far as known, or `nil` before the first request.
    package var sentRequest: NetworkRequest? {
        let (observation, task, request) = networkAttempts.state.withLock { ($0.observation, $0.task, $0.request) }
        return (observation as? NetworkObservation)?.lastRequest ?? (task as? ExchangeTask)?.sentRequest ?? request
    }
}
