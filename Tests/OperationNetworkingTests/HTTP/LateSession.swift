// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A session that delays the start of its first task, to simulate another thread that acts just before.
final class LateSession: NetworkSession {
    /// Closures that run immediately before and after the start of the task.
    struct Moment: Sendable {
        let before: @Sendable () -> Void
        let after: @Sendable () -> Void
    }

    private let transport: any NetworkSession
    private let takesOrders: Bool
    private let moment: LateMoment

    /// Creates a session over another one.
    ///
    /// If it does not take orders, its tasks are not ordered tasks.
    init(over transport: any NetworkSession, takesOrders: Bool, _ moment: Moment) {
        self.transport = transport
        self.takesOrders = takesOrders
        self.moment = LateMoment(moment)
    }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let task = transport.makeTask(with: request, receiver: receiver)
        guard takesOrders, let ordered = task as? any OrderedTask else { return LateTask(task, moment) }
        return LateOrderedTask(LateTask(task, moment), ordered)
    }
}

/// Runs the closures of a moment once.
private final class LateMoment: Sendable {
    private let moment: Locked<LateSession.Moment?>

    init(_ moment: LateSession.Moment) { self.moment = Locked(moment) }

    func pass(_ start: () -> Void) {
        let moment = moment.withLock { moment in
            defer { moment = nil }
            return moment
        }
        moment?.before()
        start()
        moment?.after()
    }
}

private final class LateTask: WrappingTask {
    let task: any NetworkTask
    let moment: LateMoment

    init(_ task: any NetworkTask, _ moment: LateMoment) {
        self.task = task
        self.moment = moment
    }

    func resume() { moment.pass { task.resume() } }
}

private final class LateOrderedTask: OrderedTask {
    private let plain: LateTask
    private let task: any OrderedTask

    init(_ plain: LateTask, _ task: any OrderedTask) {
        self.plain = plain
        self.task = task
    }

    func follow(_ order: PauseOrder) {
        guard !order.isSuspended else { return task.follow(order) }
        plain.moment.pass { task.follow(order) }
    }

    func resume() { plain.resume() }
    func suspend() { plain.suspend() }
    func cancel() { plain.cancel() }
    func hold() { plain.hold() }
    func proceed() { plain.proceed() }
}

extension NetworkSession {
    /// Blocks until the response to a request arrives, which gives the session time for its turns.
    func waitForAnswer(from url: URL) {
        let isOver = DispatchSemaphore(value: 0)
        let receiver = RecordingReceiver { event, _ in
            if case .end = event { isOver.signal() }
        }
        guard let request = try? NetworkRequest(url: url) else { return }
        makeTask(with: request, receiver: receiver).resume()
        isOver.wait()
    }
}
