// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Synchronization
import Testing

private typealias FakeTask = SessionTask<FakeCarrier>

/// A carrier that counts the posted tasks.
private final class FakeCarrier: TaskAdapter {
    typealias Transfer = Int

    struct Extras {}

    let now: Int64 = 0
    private let posts = Tally()
    var postCount: Int { posts.count }

    func post(_ task: SessionTask<FakeCarrier>) { posts.add() }
}

/// A host with one or more slots that a test controls step by step.
private final class FakeHost: TaskHost {
    typealias Carrier = FakeCarrier

    var slots: SlotTable<FakeTask>
    init(slots count: Int = 1) { slots = SlotTable(perHost: count, total: count, lookups: 1) }

    func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool) { (request.origin.name, true) }
    private(set) var forgotten: [FakeTask] = []

    func phase(of task: FakeTask) -> NetworkError.Phase { task.confined.machine.restingPhase }
    func abandon(_ task: FakeTask) { task.confined.transfer = nil }
    func apply(_ pausedDirections: TaskMachine.PausedDirections, to task: FakeTask) { task.deliverPending() }
    func forget(_ task: FakeTask) { forgotten.append(task) }

    /// Processes the task like a turn of the session.
    func visit(_ task: FakeTask) {
        applyDemands(task.takeDemands(), task)
        task.deliverPending()
    }

    /// Offers the free slot to the next task in the line.
    ///
    /// Returns true if the task takes it.
    func grant() -> Bool? {
        guard let grant = slots.next() else { return nil }
        if takesSlot(grant.ticket) { return true }
        slots.release(grant.slot)
        return false
    }
}

struct SessionTaskTests {
    private let carrier = FakeCarrier()
    private let host = FakeHost()
    private let receiver = RecordingReceiver()
    private let task: FakeTask

    init() throws {
        let url = try #require(URL(string: "https://example.com/"))
        let request = try NetworkRequest("POST", url: url, body: .data(Data("hello".utf8)))
        task = FakeTask(request, receiver, carrier, FakeCarrier.Extras())
    }

    private var record: RecordingReceiver.Record { receiver.record }
    private var head: TaskEvent { .head(ResponseHead(url: task.request.url, status: 200, headers: [:])) }

    /// Resumes the task and gives it a slot.
    private func start() {
        task.resume()
        host.visit(task)
        #expect(host.grant() == true)
        task.confined.machine.connected()
    }

    @Test func `a task suspended before the session notices takes no slot and rejoins the line on resume`() {
        task.resume()
        host.visit(task)
        task.suspend()
        #expect(host.grant() == false)
        // The session now notices the suspension.
        host.visit(task)
        #expect(host.grant() == nil && host.slots.activeCount == 0)
        task.resume()
        host.visit(task)
        #expect(host.grant() == true)
        #expect(record.ends == 0)
    }

    @Test func `a task that is suspended and resumed while its turn comes still gets a slot`() async throws {
        let tasks = (0..<20_000).map { _ in FakeTask(task.request, receiver, carrier, FakeCarrier.Extras()) }
        let host = FakeHost(slots: tasks.count)
        for task in tasks {
            task.resume()
            host.visit(task)
        }
        // Another thread suspends and resumes the task whose turn it is, as often as possible.
        let turn = Atomic(0)
        async let changes: Void = TestThread.run {
            while case let index = turn.load(ordering: .acquiring), index < tasks.count {
                tasks[index].suspend()
                tasks[index].resume()
            }
        }
        var running = 0
        for index in tasks.indices {
            turn.store(index, ordering: .releasing)
            if host.grant() == true { running += 1 }
        }
        turn.store(tasks.count, ordering: .releasing)
        try await changes
        for task in tasks { host.visit(task) }
        while let isTaken = host.grant() { running += isTaken ? 1 : 0 }
        #expect(running == tasks.count)
    }

    @Test func `a task canceled before the session notices takes no slot and ends once`() {
        task.resume()
        host.visit(task)
        task.cancel()
        #expect(host.grant() == false)
        host.visit(task)
        #expect(record.error?.code == .cancelled && record.ends == 1 && record.faults.isEmpty)
        #expect(host.forgotten.count == 1 && host.slots.activeCount == 0)
    }

    @Test func `many calls post the task to the session once`() {
        for _ in 0..<10 {
            task.resume()
            task.suspend()
            task.hold()
        }
        #expect(carrier.postCount == 1)
        host.visit(task)
        task.resume()
        #expect(carrier.postCount == 2)
    }

    @Test func `events during a hold or suspension are delivered in order after the last release`() {
        start()
        task.hold()
        task.report(head)
        task.report(.bytes(Data("abc".utf8)))
        #expect(record.head == nil && task.isHeldBack && task.confined.pendingBytes == 3)
        task.suspend()
        task.proceed()
        host.visit(task)
        #expect(record.head == nil)
        task.resume()
        // These bytes follow the events that are still undelivered.
        task.report(.bytes(Data("def".utf8)))
        #expect(record.head == nil)
        host.visit(task)
        #expect(record.text == "abcdef" && record.faults.isEmpty)
        #expect(!task.isHeldBack && task.confined.pendingBytes == 0)
    }

    @Test func `progress during a suspension is delivered on resume, before later events`() {
        start()
        task.reportSent(2)
        #expect(record.sent == 2)
        task.hold()
        task.reportSent(3)
        #expect(record.sent == 3)
        task.proceed()
        task.suspend()
        task.reportSent(5)
        task.report(.metrics(TransferMetrics()))
        #expect(record.sent == 3 && record.metrics == nil && task.isHeldBack)
        task.resume()
        #expect(task.isHeldBack)
        host.visit(task)
        #expect(record.sent == 5 && record.metrics != nil && !task.isHeldBack)
        // A repeated upload does not report progress again, and never more than the length of the body.
        task.reportSent(1)
        task.reportSent(9)
        #expect(record.sent == 5 && record.faults.isEmpty)
    }

    @Test func `progress that was under way at the suspension is delivered immediately`() {
        start()
        task.suspend()
        task.reportSent(2, wasUnderWay: true)
        #expect(record.sent == 2 && record.faults.isEmpty)
        task.cancel()
        task.reportSent(4, wasUnderWay: true)
        #expect(record.sent == 2)
    }

    @Test func `a canceled task delivers only its end, exactly once`() {
        start()
        task.suspend()
        task.report(head)
        task.reportSent(5)
        task.cancel()
        task.report(.bytes(Data("abc".utf8)))
        host.visit(task)
        task.reportEnd(nil)
        #expect(record.head == nil && record.sent == 0 && record.ends == 1 && record.error?.code == .cancelled)
        #expect(record.error?.request?.url == task.request.summary.url)
        task.resume()
        task.cancel()
        host.visit(task)
        #expect(record.ends == 1 && record.faults.isEmpty)
    }

    @Test func `a request that was sent once is not unsent if a later connection fails`() {
        start()
        task.confined.wasSent = true
        host.finish(task, NetworkError(code: .cannotConnect, phase: .connecting, message: ""))
        #expect(record.error?.code == .cannotConnect && record.error?.isUnsent == false)
    }

    /// The last steps of a session for a response.
    ///
    /// Another thread may release the task before each of them.
    private static let lastSteps: [@Sendable (FakeTask, FakeHost, inout Bool) -> Void] = [
        { task, _, _ in task.report(.head(ResponseHead(url: task.request.url, status: 204, headers: [:]))) },
        { task, _, _ in task.report(.trailers([:])) },
        { task, _, _ in task.report(.metrics(TransferMetrics())) },
        { task, _, isHeldBack in isHeldBack = task.isHeldBack },
        { task, host, isHeldBack in
            guard task.confined.machine.transferEnded(withFailure: false, isHeldBack: isHeldBack) else { return }
            host.finish(task, nil)
        },
        { _, _, _ in },
    ]

    @Test(arguments: lastSteps.indices, [false, true])
    func `resuming or proceeding before any of the last steps loses no event`(_ moment: Int, _ isSuspended: Bool) {
        let receiver = RecordingReceiver { event, task in
            guard case .informational = event else { return }
            if isSuspended { task.suspend() } else { task.hold() }
        }
        let task = FakeTask(task.request, receiver, carrier, FakeCarrier.Extras())
        task.resume()
        host.visit(task)
        #expect(host.grant() == true)
        task.confined.machine.connected()
        task.report(.informational(ResponseHead(url: task.request.url, status: 103, headers: [:])))
        host.visit(task)
        var isHeldBack = false
        for (number, step) in Self.lastSteps.enumerated() {
            if number == moment {
                if isSuspended { task.resume() } else { task.proceed() }
            }
            step(task, host, &isHeldBack)
            #expect(receiver.record.head == nil || number >= moment)
            // The session may process the task between libcurl's last event and the end.
            if number == moment, number < 2 { host.visit(task) }
        }
        host.visit(task)
        let record = receiver.record
        #expect(record.isSuccess && record.status == 204 && record.trailers != nil && record.metrics != nil)
        #expect(record.informational.count == 1 && record.faults.isEmpty && host.forgotten.count == 1)
    }
}
