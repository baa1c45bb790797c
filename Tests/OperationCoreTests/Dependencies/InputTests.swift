// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

private final class Receiver: SyncOperation<String, Flaw>, @unchecked Sendable {
    var number = 0
    var text: String?
    var log: [String] = []

    override func main() {
        log.append("main")
        finish(withResult: "\(number) \(text ?? "none")")
    }
}

@Suite(.timeLimit(.minutes(3)))
struct InputTests {
    @Test(arguments: [true, false])
    func `a result is delivered before the body, on the thread of the body`(endsFirst: Bool) throws {
        let upstream = HandDriven(), receiver = Receiver(), here = ThreadMark()
        if endsFirst { UpstreamEnd.succeeds.perform(on: upstream) }
        try receiver.receive(from: upstream, otherwise: .cancel) { receiver, result in
            #expect(here.isCurrent)
            receiver.number = result
            receiver.log.append("input")
        }
        if !endsFirst { UpstreamEnd.succeeds.perform(on: upstream) }
        #expect(receiver.log == [])
        receiver.start()
        #expect(receiver.log == ["input", "main"])
        #expect(receiver.outcome == .success("7 none"))
    }

    @Test(arguments: [UpstreamEnd.fails, .isCancelled], [true, false])
    func `an operation whose input is missing is canceled, fails or uses another value`(
        end: UpstreamEnd, endsFirst: Bool
    ) throws {
        let upstream = HandDriven()
        let cancelled = Receiver(), failed = Receiver(), replaced = Receiver()
        if endsFirst { end.perform(on: upstream) }
        try cancelled.receive(\.number, from: upstream)
        try failed.receive(\.number, from: upstream, otherwise: .fail { .converted("\($0)") })
        try replaced.receive(\.number, from: upstream, otherwise: .use(-1))
        if !endsFirst { end.perform(on: upstream) }
        for receiver in [cancelled, failed, replaced] { receiver.start() }
        let code: CancellationCause.Code = end == .fails ? .dependencyFailed : .dependencyCancelled
        #expect(cancelled.cancellationCause?.code == code)
        let text = end == .fails ? "failed: first" : "canceled: [requested] upstream"
        #expect(failed.outcome == .failure(.converted(text)))
        #expect(replaced.outcome == .success("-1 none"))
        #expect(cancelled.log + failed.log == [])
    }

    @Test(.comparesObjects)
    func `an input is written to a key path, even of an optional property`() throws {
        let number = ClosureOperation { 5 }, text = ClosureOperation { "five" }, receiver = Receiver()
        try receiver.receive(\.number, from: number)
        try receiver.receive(\.text, from: text)
        #expect(receiver.dependencies == [number, text])
        number.start()
        #expect(!receiver.isReady)
        text.start()
        receiver.start()
        #expect(receiver.outcome == .success("5 five"))
    }

    @Test func `inputs are delivered in the order in which they were requested`() throws {
        let sources = (0..<5).map { _ in HandDriven() }, receiver = Receiver()
        for (number, source) in sources.enumerated() {
            try receiver.receive(from: source, otherwise: .cancel) { $0.log.append("\(number):\($1)") }
        }
        for source in sources.reversed() { UpstreamEnd.succeeds.perform(on: source) }
        receiver.start()
        #expect(receiver.log == ["0:7", "1:7", "2:7", "3:7", "4:7", "main"])
    }

    @Test func `several results of different types are delivered together`() async throws {
        let number = ClosureOperation { 1 }, text = TaskOperation { "one" }
        let fails: ClosureOperation<Bool, Flaw> = ClosureOperation { () throws(Flaw) in true }
        let receiver = Receiver()
        try receiver.receive(from: number, text, fails) { receiver, number, text, flag in
            receiver.number = number
            receiver.text = "\(text) \(flag)"
        }
        receiver.start()
        for operation in [fails, text, number] as [ManagedOperation] { operation.start() }
        #expect(await receiver.finalOutcome == .success("1 one true"))
    }

    @Test(arguments: 0..<3)
    func `an operation is canceled if one of several inputs has no result`(failing: Int) throws {
        let sources = (0..<3).map { HandDriven("\($0)") }, receiver = Receiver()
        try receiver.receive(from: sources[0], sources[1], sources[2]) { receiver, _, _, _ in
            receiver.log.append("input")
        }
        for (number, source) in sources.enumerated() {
            (number == failing ? UpstreamEnd.fails : .succeeds).perform(on: source)
        }
        receiver.start()
        #expect(receiver.cancellationCause?.code == .dependencyFailed)
        #expect(receiver.cancellationCause?.message.contains("dependency \(failing) failed") == true)
        #expect(receiver.log == [])
    }

    @Test(.comparesObjects)
    func `an operation may receive several inputs from the same source`() throws {
        let source = HandDriven(), receiver = Receiver()
        try receiver.receive(\.number, from: source)
        try receiver.receive(from: source, otherwise: .cancel) { $0.text = "\($1 * 2)" }
        try receiver.receive(from: source, source) { receiver, left, right in receiver.log.append("\(left + right)") }
        #expect(receiver.dependencies == [source])
        UpstreamEnd.succeeds.perform(on: source)
        receiver.start()
        #expect(receiver.outcome == .success("7 14"))
        #expect(receiver.log == ["14", "main"])
    }

    @Test(arguments: UpstreamEnd.allCases, [true, false])
    func `receiveOutcome delivers a success, a failure or a cancellation`(end: UpstreamEnd, endsFirst: Bool) throws {
        let upstream = HandDriven(), receiver = Receiver()
        if endsFirst { end.perform(on: upstream) }
        try receiver.receiveOutcome(of: upstream) { $0.text = $1.word }
        if !endsFirst { end.perform(on: upstream) }
        receiver.start()
        let word = ["success 7", "failure first", "cancelled requested"][UpstreamEnd.allCases.firstIndex(of: end) ?? 0]
        #expect(receiver.outcome == .success("0 \(word)"))
    }

    @Test func `a canceled receiver gets no input and releases its closure`() throws {
        let census = LiveObjects(), upstream = HandDriven(), receiver = Receiver()
        do {
            let object = census.track(Witness())
            try receiver.receive(from: upstream, otherwise: .cancel) { receiver, _ in
                withExtendedLifetime(object) { receiver.log.append("input") }
            }
        }
        receiver.cancel()
        receiver.start()
        UpstreamEnd.succeeds.perform(on: upstream)
        #expect(receiver.log == [])
        #expect(census.count == 0)
    }

    @Test func `inputs pass through a chain of operations in a plain queue`() async throws {
        let first = ClosureOperation { 1 }
        let second = Receiver(), third = Receiver(), queue = OperationQueue()
        try second.receive(\.number, from: first)
        try third.receive(\.text, from: second)
        for operation in [third, second, first] as [Operation] { queue.addOperation(operation) }
        #expect(try await third.value == "0 1 none")
    }
}
