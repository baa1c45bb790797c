// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A wait for one event of a queue, or for the cancellation of the task that waits.
package final class QueueWait: Sendable {
    /// The number of slots to wait for, if the wait is for room.
    let places: Int
    /// The operations of the queue that cannot end before the wait, if one of their bodies waits for room.
    let bodies: Set<ObjectIdentifier>

    /// The closure to call at the end of the wait, or `nil` after the end.
    private let state: Locked<(notify: (@Sendable () -> Void)?, isByEvent: Bool)>

    /// Creates a wait that calls `notify` once when the wait ends.
    package init(places: Int = 1, bodies: Set<ObjectIdentifier> = [], _ notify: @escaping @Sendable () -> Void) {
        self.places = places
        self.bodies = bodies
        state = Locked((notify, false))
    }

    /// Waits, and returns whether the event occurred and not the cancellation.
    @discardableResult
    static func run(
        places: Int = 1, bodies: Set<ObjectIdentifier> = [], _ begin: (QueueWait) -> Void
    ) async -> Bool {
        let taskWait = TaskWait()
        let wait = QueueWait(places: places, bodies: bodies) { taskWait.end() }
        begin(wait)
        await taskWait.passage { wait.end(isByEvent: false) }
        return wait.state.withLock { $0.isByEvent }
    }

    /// Whether the wait has ended.
    var isOver: Bool { state.withLock { $0.notify == nil } }

    /// Ends the wait, and returns `false` if it had already ended.
    @discardableResult
    func end(isByEvent: Bool = true) -> Bool {
        let notify = state.withLock { state in
            if state.notify != nil { state.isByEvent = isByEvent }
            return exchange(&state.notify, with: nil)
        }
        notify?()
        return notify != nil
    }
}

/// A list of waits in the order in which they were added.
///
/// Abandoned waits are removed once there are many of them, so that repeated waits with a time limit do not use more
/// and more memory.
struct WaitList {
    private var waits = Fifo<QueueWait>()
    private var limit = 64
    /// The sum of the numbers of bodies of the waits, each of which may be counted several times.
    private var bodyCount = 0
    /// Whether `becameEndless` has returned `true` for the present first wait.
    private var isKnownEndless = false

    var isEmpty: Bool { waits.isEmpty }
    var count: Int { waits.count }

    mutating func append(_ wait: QueueWait) {
        if waits.count >= limit {
            var present = Fifo<QueueWait>()
            var count = 0
            while let wait = popFirst() {
                present.append(wait)
                count += wait.bodies.count
            }
            (waits, bodyCount) = (present, count)
            limit = max(present.count * 2, 64)
        }
        waits.append(wait)
        bodyCount += wait.bodies.count
    }

    /// Returns the first wait that was not abandoned, without removing it.
    mutating func first() -> QueueWait? {
        while let wait = waits.first {
            if !wait.isOver { return wait }
            waits.removeFirst()
            bodyCount -= wait.bodies.count
        }
        return nil
    }

    /// Removes and returns the first wait that was not abandoned.
    @discardableResult
    mutating func popFirst() -> QueueWait? {
        while let wait = waits.popFirst() {
            bodyCount -= wait.bodies.count
            isKnownEndless = false
            if !wait.isOver { return wait }
        }
        return nil
    }

    mutating func takeAll() -> [QueueWait] {
        var all: [QueueWait] = []
        while let wait = popFirst() { all.append(wait) }
        return all
    }

    /// Returns once whether the first wait cannot end, because too many operations cannot end before these waits.
    mutating func becameEndless(in capacity: Int) -> Bool {
        guard !isKnownEndless, let first = first(), first.places <= capacity, first.places > capacity - bodyCount else {
            return false
        }
        let all = takeAll()
        for wait in all { append(wait) }
        let bodies = all.reduce(into: Set<ObjectIdentifier>()) { $0.formUnion($1.bodies) }
        isKnownEndless = first.places > capacity - bodies.count
        return isKnownEndless
    }
}

/// A body whose wait is over and that waits for a slot.
struct ReturningBody: Sendable {
    /// The way in which the body resumes.
    enum Turn: Sendable {
        /// The waiting thread resumes.
        case thread(DispatchSemaphore)
        /// A closure is called, because no thread waits.
        case call(@Sendable () -> Void)
    }

    let key: QueueMachine.Key
    let turn: Turn

    var hasThread: Bool {
        if case .thread = turn { true } else { false }
    }

    /// Resumes the body, because there is a slot or its operation has ended.
    func resume() {
        switch turn {
        case .thread(let semaphore): semaphore.signal()
        // The closure may run code of the user and end its operation, after which another body resumes.
        case .call(let resume): DispatchQueue.global().async(execute: resume)
        }
    }
}

/// The returning bodies, in their order.
struct ReturningBodies {
    private var bodies = Fifo<ReturningBody>()
    /// The number of returning bodies with a waiting thread.
    private(set) var threads = 0

    var isEmpty: Bool { bodies.isEmpty }
    var count: Int { bodies.count }
    var first: ReturningBody? { bodies.first }

    mutating func append(_ body: ReturningBody) {
        if body.hasThread { threads += 1 }
        bodies.append(body)
    }

    mutating func removeFirst() {
        if bodies.popFirst()?.hasThread == true { threads -= 1 }
    }

    /// Removes and returns the bodies of an entry that have a waiting thread.
    mutating func removeThreads(of key: QueueMachine.Key) -> [ReturningBody] {
        let removed = bodies.removeAll {
            $0.hasThread && $0.key.slot == key.slot && $0.key.generation == key.generation
        }
        threads -= removed.count
        return removed
    }
}

// Callers that wait until a full queue has room for them.
extension QueueEngine {
    /// Calls `add` as soon as there is room, and passes whether slots were reserved, which the call uses up.
    func whenThereIsRoom<Added>(
        for count: Int, toAdd what: @autoclosure () -> String,
        _ add: (_ hasReservations: Bool) throws(OperationSetupError) -> Added
    ) async throws(OperationSetupError) -> Added {
        var hasReservations = false
        while true {
            do throws(OperationSetupError) {
                return try add(hasReservations)
            } catch {
                // Waiting does not help if the operations exceed the capacity.
                guard error.code == .full, count <= state.withLock({ $0.capacity }) else { throw error }
            }
            let bodies = Set(runners(around: BodyWait.callers.map(\.operation)).map { ObjectIdentifier($0.life) })
            hasReservations = await QueueWait.run(places: count, bodies: bodies) { wait in
                // The wait ends when there is room, which is then reserved for the caller.
                let isEndless = apply { state, _ in
                    state.roomWaiters.append(wait)
                    return !bodies.isEmpty && !state.isClosed && state.roomWaiters.becameEndless(in: state.capacity)
                }
                if isEndless { reportEndlessWait() }
            }
            if Task.isCancelled {
                // Release even zero slots, so that slots that were collected for this caller go to the next caller.
                releaseReservations(hasReservations ? count : 0)
                throw .cancelled(what(), queue: name)
            }
        }
    }

    private func reportEndlessWait() {
        OperationDiagnostics.report(
            .waitsForItself, by: name,
            "Bodies that queue \(name) runs wait for room in the queue, but the queue has no room until they return. "
                + "Increase its `capacity`, or do not await `addWhenThereIsRoom` in these bodies.")
    }

    /// Resumes waiting callers for which there is room, in their order.
    ///
    /// If there is less room than the first caller needs, it is collected for that caller. So callers that need less
    /// cannot keep it waiting forever.
    func giveRoom(_ state: inout State, _ after: inout After) {
        while let wait = state.roomWaiters.first() {
            if !state.isClosed {
                guard wait.places <= state.capacity else {
                    state.roomWaiters.popFirst()
                    after.need().callbacks.append { wait.end(isByEvent: false) }
                    continue
                }
                let free = state.capacity - state.machine.live - state.reserved - state.gathered
                state.gathered += max(min(free, wait.places - state.gathered), 0)
                guard state.gathered >= wait.places else { return }
            }
            state.roomWaiters.popFirst()
            state.gathered -= min(state.gathered, wait.places)
            state.reserved += wait.places
            after.need().roomWaits.append(wait)
        }
        state.gathered = 0
    }

    /// The number of callers that wait for room, including stored callers whose task was canceled.
    package var roomWaiterCount: Int { state.withLock { $0.roomWaiters.count } }
}
