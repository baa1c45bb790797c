// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import Synchronization

/// Tells the observers of one operation: the shell of ``ObservationMachine``.
///
/// Of the threads that note something one tells, and sees to what others note meanwhile; so nothing is told twice at once,
/// and an observer that acts on the operation is not within itself.
final class NetworkObservation: Sendable {
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
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var host: (any AnyNetworkOperation)?
    private let state = Locked(State())

    init(of operation: any AnyNetworkOperation) {
        host = operation
        object = ObjectIdentifier(operation)
    }

    var operation: (any AnyNetworkOperation)? { host }

    /// The last request that was made ready, or sent.
    var lastRequest: NetworkRequest? { state.withLock { $0.machine.request } }

    /// Adds one, unless it is there already; false if it comes too late to be told of the beginning.
    func add(_ observer: any NetworkObserver) -> Bool {
        state.withLock { state in
            guard !state.isOver, !state.machine.hasBegun else { return false }
            if !state.observers.contains(where: { Self.isSame($0, observer) }) { state.observers.append(observer) }
            return true
        }
    }

    /// Takes one out: it is told nothing more, but for what is being told just now.
    func remove(_ observer: any NetworkObserver) {
        // It is the user's, and goes outside of the lock.
        let left = state.withLock { state in
            let left = state.observers
            state.observers = left.filter { !Self.isSame($0, observer) }
            return left
        }
        withExtendedLifetime(left) {}
    }

    /// An object is the same as itself, and a log as its copies that write the same.
    ///
    /// Other values are not compared: that would be the user's code.
    static func isSame(_ left: any NetworkObserver, _ right: any NetworkObserver) -> Bool {
        let (one, other) = (type(of: left) as Any.Type, type(of: right) as Any.Type)
        guard one == other else { return false }
        if one is AnyClass { return left as AnyObject === right as AnyObject }
        guard let left = left as? NetworkLog, let right = right as? NetworkLog else { return false }
        return left.writesAs(right)
    }

    /// Tells of a step, now or as soon as what is being told was told.
    ///
    /// - Parameter operation: The one that takes it, which may be on its way to be freed.
    func note(_ step: AttemptStep, _ number: Int, by operation: any AnyNetworkOperation) {
        // Name and clock may be the user's.
        let name = state.withLock({ $0.name }) ?? operation.displayName
        let now = operation.clock.now
        // The last request may be all that keeps something of the user's: it goes outside of the lock.
        let (tells, left) = state.withLock { state in
            let left = state.machine.request
            if state.name == nil { state.name = name }
            let events = state.machine.note(step, number, at: now) { kind, attempt, hop, moment in
                NetworkEvent(kind, attempt, hop, moment, by: self, name)
            }
            var tells = false
            for event in events where state.events.append(event) { tells = true }
            return (tells, left)
        }
        withExtendedLifetime(left) {}
        guard tells else { return }
        while let (event, observers) = next() {
            for observer in observers { observer.observe(event) }
        }
    }

    private func next() -> (NetworkEvent, [any NetworkObserver])? {
        // They are the user's, and go outside of the lock.
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
    /// Adds an observer; false if the operation began or ended, so that it would be told a part of the story, or nothing.
    @discardableResult
    package func add(_ observer: any NetworkObserver, of operation: any AnyNetworkOperation) -> Bool {
        let known = state.withLock { $0.observation }
        let made = known ?? NetworkObservation(of: operation)
        let observation: NetworkObservation? = state.withLock { state in
            // Another thread may have started or cancelled the operation since it was looked at, or added one.
            guard state.machine.phase == .idle else { return nil }
            if state.observation == nil { state.observation = made }
            isObserved.store(true, ordering: .relaxed)
            return state.observation
        }
        return observation?.add(observer) ?? false
    }

    /// Takes an observer out.
    func remove(_ observer: any NetworkObserver) { state.withLock { $0.observation }?.remove(observer) }

    /// Tells those who observe the operation of a step; without any it is not even made.
    func note(_ step: @autoclosure () -> AttemptStep, _ number: Int, _ host: any AnyNetworkOperation) {
        // An observer comes before the start, or not at all; whoever has a step to tell of comes after that.
        guard isObserved.load(ordering: .relaxed), let observation = state.withLock({ $0.observation }) else { return }
        observation.note(step(), number, by: host)
    }

    /// The session of an attempt tells of one of its requests.
    func noteHop(_ step: @autoclosure () -> AttemptStep, _ number: Int) {
        let (observation, host) = state.withLock { state in
            (state.observation, state.observation != nil && state.machine.mayBeTold(number) ? state.host : nil)
        }
        guard let observation, let host else { return }
        observation.note(step(), number, by: host)
    }
}
