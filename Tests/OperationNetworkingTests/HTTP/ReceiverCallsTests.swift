// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ReceiverCallsTests {
    private let told = EventRecorder<String>()
    private let calls = ReceiverCalls(RecordingReceiver())
    private let isInside = Gate(), continues = Gate()

    /// Records the first call when `continues` opens.
    private func recordFirst() {
        isInside.open()
        continues.wait()
        told.record("first")
    }

    @Test func `dropRest discards waiting calls, but the final call is still made`() async throws {
        async let first: Void = TestThread.run { calls.make { _ in recordFirst() } }
        await isInside.passage()
        calls.make { _ in told.record("waits") }
        calls.dropRest()
        calls.make { _ in told.record("too late") }
        continues.open()
        try await first
        calls.end { _ in told.record("last") }
        calls.end { _ in told.record("after the last") }
        #expect(told.events == ["first", "last"])
    }

    @Test func `the after closures run after all waiting calls, on the thread that made the calls`()
        async throws
    {
        async let first: Void = TestThread.run {
            calls.make { _ in
                recordFirst()
            } after: {
                // No call is in progress, so this call is made immediately.
                #expect(calls.makeNow { _ in told.record("at once") })
                told.record("after the first")
            }
        }
        await isInside.passage()
        calls.make({ _ in told.record("second") }, after: { told.record("after the second") })
        calls.make { _ in told.record("third") }
        #expect(told.events.isEmpty)
        continues.open()
        try await first
        #expect(told.events == ["first", "second", "third", "after the second", "at once", "after the first"])
    }
}
