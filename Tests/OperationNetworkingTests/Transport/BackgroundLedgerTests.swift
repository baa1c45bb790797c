// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

/// A background session's decisions, with a script in place of the system.
@Suite(.timeLimit(.minutes(1)))
struct BackgroundLedgerTests {
    private typealias Ledger = BackgroundLedger<String, String, Int>

    @Test func `a transfer of this run goes to its task with its file`() throws {
        var ledger = Ledger()
        ledger.begin(1, "task")
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("ledger-\(UUID().uuidString)")
        try Data("body".utf8).write(to: url)
        ledger.save(1, SpooledFile.taking(url))
        guard case .conclude("task", let ending) = ledger.end(1, nil, "answer") else {
            return #expect(Bool(false), "The task was not notified.")
        }
        #expect(try ending.file.map { try Data(contentsOf: $0.url) } == Data("body".utf8))
        #expect(ending.failure == nil)
    }

    @Test func `a transfer of an earlier run goes to the rule for orphans`() {
        var ledger = Ledger()
        _ = ledger.setOrphanRule(true)
        ledger.receive(7, Data("a".utf8))
        ledger.receive(7, Data("b".utf8))
        guard case .deliverOrphan("answer", let ending) = ledger.end(7, nil, "answer") else {
            return #expect(Bool(false), "The orphan was not delivered.")
        }
        #expect(ending.body == Data("ab".utf8))
    }

    @Test func `orphans that end before there is a rule are delivered when it is set, in order and once`() {
        var ledger = Ledger()
        for number in 1...3 {
            guard case .none = ledger.end(number, nil, "answer \(number)") else {
                return #expect(Bool(false), "There is no rule yet.")
            }
        }
        let kept = [false, true, true].map { isSet in ledger.setOrphanRule(isSet).map(\.0) }
        #expect(kept == [[], ["answer 1", "answer 2", "answer 3"], []])
    }

    @Test func `a number that the system uses again has nothing of the transfer before`() {
        var ledger = Ledger()
        ledger.receive(1, Data("old".utf8))
        ledger.begin(1, "task")
        guard case .conclude(_, let ending) = ledger.end(1, nil, "answer") else {
            return #expect(Bool(false), "The task was not notified.")
        }
        #expect(ending.body == nil)
        #expect(ledger.transfer(1) == nil)
    }

    @Test func `the error of the system is the one that counts`() {
        var ledger = Ledger()
        ledger.begin(1, "task")
        ledger.save(1, .failure(NetworkError(code: .diskFull, phase: .saving, message: "full")))
        let lost = NetworkError(code: .connectionLost, phase: .receiving, message: "lost")
        guard case .conclude(_, let ending) = ledger.end(1, lost, "answer") else {
            return #expect(Bool(false), "The task was not notified.")
        }
        #expect(ending.failure?.code == .connectionLost)
    }

    @Test func `the application's handler is called when all events were delivered`() {
        var ledger = Ledger()
        let early = [1, 2].map { ledger.keep($0) }
        #expect(early == [nil, nil])
        let called = ledger.finishEvents()
        #expect(called == [1, 2])
        let later = ledger.keep(3)
        #expect(later == nil)
    }

    @Test func `a handler that comes after the events is called at once, and only that one`() {
        var ledger = Ledger()
        let early = ledger.finishEvents()
        #expect(early == [])
        let late = [1, 2].map { ledger.keep($0) }
        #expect(late == [1, nil])
        let called = ledger.finishEvents()
        #expect(called == [2])
    }

    @Test func `whatever the order of events, each handler and each orphan is delivered once`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<500 {
            var ledger = Ledger(), delivered: [String] = [], called: [Int] = []
            var events = Array(0..<8)
            events.shuffle(using: &generator)
            for event in events {
                switch event {
                case 0: delivered += ledger.setOrphanRule(true).map(\.0)
                case 1: if let due = ledger.keep(1) { called.append(due) }
                case 2: called += ledger.finishEvents()
                default:
                    if case .deliverOrphan(let answer, _) = ledger.end(event, nil, "\(event)") {
                        delivered.append(answer)
                    }
                }
            }
            #expect(delivered.sorted() == ["3", "4", "5", "6", "7"], "order: \(events)")
            #expect(called == [1], "order: \(events)")
        }
    }
}
