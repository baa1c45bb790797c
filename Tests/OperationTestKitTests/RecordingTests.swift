// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct RecordingTests {
    @Test func `events are recorded in order`() {
        let recorder = EventRecorder<String>()
        #expect(recorder.count == 0)
        recorder.record("a")
        recorder.record("b")
        #expect(recorder.events == ["a", "b"])
        #expect(recorder.count == 2)
    }

    @Test func `a test can wait for a number of events`() async {
        let recorder = EventRecorder<Int>()
        async let two = recorder.events(atLeast: 2)
        async let three = recorder.events(atLeast: 3)
        for number in 1...2 { recorder.record(number) }
        #expect(await two.prefix(2) == [1, 2])
        recorder.record(3)
        #expect(await three == [1, 2, 3])
        #expect(await recorder.events(atLeast: 0) == [1, 2, 3])
        #expect(await recorder.events(atLeast: 3) == [1, 2, 3])
    }

    @Test func `the deinit of a removed event can use the recorder`() {
        let recorder = EventRecorder<LastWord>(), words = EventRecorder<String>()
        recorder.record(LastWord { [weak recorder] in words.record("\(recorder?.count ?? -1) left") })
        recorder.forget()
        #expect(words.events == ["0 left"])
    }

    @Test func `canceled tasks stop waiting for events and timers`() async {
        let recorder = EventRecorder<Int>(), clock = ManualClock()
        let events = Task { await recorder.events(atLeast: 1) }
        let pending = Task { await clock.pending(atLeast: 1) }
        events.cancel()
        pending.cancel()
        #expect(await events.value == [])
        await pending.value
        #expect(recorder.waitingCount == 0 && clock.waitingCount == 0)
    }

    @Test func `no event of several threads is lost, and the order of each thread is kept`() async throws {
        let recorder = EventRecorder<[Int]>()
        try await TestThread.run {
            let team = ThreadTeam(count: 4)
            team.run(
                (0..<4).map { (thread: Int) -> @Sendable () -> Void in
                    { for number in 0..<1_000 { recorder.record([thread, number]) } }
                })
        }
        let events = await recorder.events(atLeast: 4_000)
        for thread in 0..<4 {
            #expect(events.filter { $0[0] == thread }.map { $0[1] } == Array(0..<1_000))
        }
    }

    @Test func `live objects are counted and named but not kept alive`() {
        let census = LiveObjects()
        #expect(census.count == 0)
        var first: First? = census.track(First())
        let second = census.track(Second())
        #expect(census.count == 2)
        #expect(census.types == ["First", "Second"])
        withExtendedLifetime(first) {}
        first = nil
        #expect(census.types == ["Second"])
        withExtendedLifetime(second) {}
    }

    @Test func `counting live objects is safe while one of them is freed`() async throws {
        let census = LiveObjects()
        try await TestThread.run {
            let team = ThreadTeam(count: 2)
            for _ in 0..<500 {
                let owner = Owner(census.track(First()))
                team.run([{ owner.letGo() }, { _ = census.types }])
            }
        }
        #expect(census.count == 0)
    }
}

private final class LastWord: Sendable {
    private let say: @Sendable () -> Void
    init(_ say: @escaping @Sendable () -> Void) { self.say = say }
    deinit { say() }
}

private final class First: Sendable {}
private final class Second: Sendable {}

// Sendable: only one thread uses it.
private final class Owner: @unchecked Sendable {
    private var object: First?
    init(_ object: First) { self.object = object }
    func letGo() { object = nil }
}
