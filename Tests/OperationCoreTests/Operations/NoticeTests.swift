// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Notices about calls that have no effect.
///
/// The notice handler is shared by the process, so each test uses its own operation name.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct NoticeTests {
    func expectNotices(
        _ kinds: [OperationNotice.Kind], of name: String, location: SourceLocation = #_sourceLocation,
        during life: (HandDriven) throws -> Void
    ) rethrows {
        let recorder = NoticeHub.recorder(for: name)
        try life(HandDriven(name))
        #expect(recorder.events.map(\.kind) == kinds, sourceLocation: location)
    }

    @Test func `correct use of an operation reports no notice`() {
        expectNotices([], of: "Notice: none") { operation in
            operation.start()
            operation.suspend()
            operation.start()
            operation.suspend()
            operation.resume()
            operation.finish(withResult: 1)
        }
    }

    @Test func `finishing twice reports a notice`() {
        expectNotices([.finishedTwice], of: "Notice: twice") { operation in
            operation.startAndFinish(withResult: 1)
            operation.finish(withError: .first)
        }
        expectNotices([.finishedTwice], of: "Notice: twice early") { operation in
            operation.finish(withResult: 1)
            operation.finish(withResult: 1)
        }
        #expect(!OperationNotice.Kind.finishedTwice.isHarmless)
    }

    @Test func `freeing an executing operation reports a notice`() {
        expectNotices([.releasedUnfinished], of: "Notice: freed") { $0.start() }
        expectNotices([], of: "Notice: freed before") { _ in }
        expectNotices([], of: "Notice: freed after") { operation in
            operation.start()
            operation.cancel()
        }
    }

    @Test func `starting twice reports a notice`() throws {
        expectNotices([.startedTwice, .startedTwice], of: "Notice: start") { operation in
            operation.start()
            operation.startAndFinish(withResult: 1)
            operation.start()
        }
        let upstream = HandDriven()
        try expectNotices([.startedTwice], of: "Notice: start waiting") { operation in
            try operation.depend(on: upstream, otherwise: .runAnyway)
            operation.start()
            operation.start()
        }
    }

    @Test func `finishing after a cancellation reports a harmless notice`() {
        expectNotices([.finishedAfterCancellation], of: "Notice: late finish") { operation in
            operation.start()
            operation.cancel()
            operation.finish(withResult: 1)
        }
        #expect(OperationNotice.Kind.finishedAfterCancellation.isHarmless)
    }

    @Test func `finishing an operation that winds down reports no notice`() {
        let recorder = NoticeHub.recorder(for: "Notice: wind down")
        let operation = HandDriven("Notice: wind down", windsDown: true)
        operation.start()
        operation.cancel()
        operation.finish(withResult: 1)
        #expect(recorder.events.map(\.kind) == [])
        operation.finish(withResult: 1)
        #expect(recorder.events.map(\.kind) == [.finishedAfterCancellation])
    }

    @Test func `canceling after the end reports no notice`() {
        expectNotices([], of: "Notice: late cancel") { operation in
            operation.startAndFinish(withResult: 1)
            operation.cancel()
        }
    }

    @Test func `a body that returns without a result reports a notice`() {
        let recorder = NoticeHub.recorder(for: "Notice: silent")
        let operation = SyncProbe("Notice: silent") { _ in }
        operation.start()
        #expect(recorder.events.map(\.kind) == [.noResult])
        #expect(recorder.events.first?.message.contains("finish(withResult:)") == true)
        let other = NoticeHub.recorder(for: "Notice: cancelled body")
        SyncProbe("Notice: cancelled body") { $0.cancel() }.start()
        #expect(other.events.map(\.kind) == [])
    }

    @Test func `the description of a notice is one line with the operation, the mistake and the kind`() {
        let recorder = NoticeHub.recorder(for: "Notice: line")
        let operation = HandDriven("Notice: line")
        operation.start()
        operation.start()
        let line = recorder.events.first?.description ?? ""
        #expect(line.hasPrefix("Notice: line: "))
        #expect(line.hasSuffix(" [startedTwice]"))
    }

    @Test func `the notice handler is called on the thread of the mistake and can use the operation`() {
        let name = "Notice: thread", seen = EventRecorder<Bool>()
        NoticeHub.install()
        let operation = HandDriven(name), here = ThreadMark()
        let previous = OperationDiagnostics.handler
        OperationDiagnostics.handler = { notice in
            previous?(notice)
            if notice.operation == name {
                operation.cancel(because: .requested("mistake"))
                seen.record(here.isCurrent)
            }
        }
        operation.start()
        operation.start()
        OperationDiagnostics.handler = previous
        #expect(seen.events == [true])
        #expect(operation.cancellationCause?.message == "mistake")
    }

    @Test func `a notice uses the type name for an operation without a name`() {
        let recorder = NoticeHub.recorder(for: "Nameless")
        let operation = Nameless { 1 }
        operation.start()
        operation.start()
        #expect(recorder.events.map(\.operation) == ["Nameless"])
    }
}

private final class Nameless: SyncOperation<Int, Never>, @unchecked Sendable {
    private let body: () -> Int
    init(_ body: @escaping () -> Int) { self.body = body }
    override func main() { finish(withResult: body()) }
}
