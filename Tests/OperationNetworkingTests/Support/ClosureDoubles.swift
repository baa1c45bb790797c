// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking

/// A session that makes each task with a closure.
final class ClosureSession: NetworkSession {
    private let make: @Sendable (NetworkRequest, any NetworkReceiver) -> any NetworkTask

    init(_ make: @escaping @Sendable (NetworkRequest, any NetworkReceiver) -> any NetworkTask) { self.make = make }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        make(request, receiver)
    }
}

/// An object that calls a closure when it is released, and that can be an error.
final class LastWord: Error {
    private let say: @Sendable () -> Void

    init(_ say: @escaping @Sendable () -> Void) { self.say = say }

    deinit { say() }
}

/// A task that calls a closure when it is resumed, and ignores all other calls.
final class ClosureTask: IdleTask {
    private let start: @Sendable (ClosureTask) -> Void

    init(_ start: @escaping @Sendable (ClosureTask) -> Void = { _ in }) { self.start = start }

    func resume() { start(self) }
}

/// A producer that gets its bytes from a closure, which also gets the number of the call.
final class ClosureProducer: BodyProducer {
    typealias Produce = @Sendable (UnsafeMutableRawBufferPointer, BodyWaker, Int) throws -> BodyPortion

    private let calls = Locked(0)
    private let produce: Produce

    init(_ produce: @escaping Produce) { self.produce = produce }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        try produce(buffer, waker, calls.next())
    }
}

/// A clock whose time and timers come from closures, or else from another clock.
struct ClosureClock: OperationClock {
    typealias Schedule = @Sendable (OperationInstant, @escaping @Sendable () -> Void) -> any OperationTimer

    /// The timer of an action that was called immediately.
    struct Done: OperationTimer {
        func cancel() {}
    }

    private let read: @Sendable () -> OperationInstant
    private let schedule: Schedule

    init(
        over clock: any OperationClock, now: (@Sendable () -> OperationInstant)? = nil, schedule: Schedule? = nil
    ) {
        read = now ?? { clock.now }
        self.schedule = schedule ?? { clock.schedule(at: $0, $1) }
    }

    var now: OperationInstant { read() }

    func schedule(at instant: OperationInstant, _ action: @escaping @Sendable () -> Void) -> any OperationTimer {
        schedule(instant, action)
    }
}
