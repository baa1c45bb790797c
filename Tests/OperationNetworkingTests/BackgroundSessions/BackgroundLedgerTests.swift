// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationBackgroundSessions
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the decisions of a background session with a script instead of the system.
@Suite(.timeLimit(.minutes(5)))
final class BackgroundLedgerTests {
    private var ledger = Ledger()
    private typealias Ledger = BackgroundLedger<String, String, String, Int>

    private static let lost = NetworkError(code: .connectionLost, phase: .receiving, message: "lost")

    private static func file() -> SpooledFile { SpooledFile(URL(fileURLWithPath: "/nowhere/\(UUID().uuidString)")) }

    private static func key(_ path: String) throws -> Ledger.RequestKey {
        .init(method: "GET", url: try #require(URL(string: "https://example.com/\(path)")), headers: [:])
    }

    @Test func `a task number that the system reuses has no data of the earlier transfer`() {
        _ = ledger.receive(1, Data("old".utf8))
        ledger.begin(1, "task")
        guard case .conclude(_, let ending) = ledger.end(1, .init(), "answer")
        else { return unmet("The task was not notified.") }
        #expect(ending.body == nil)
    }

    @Test func `the error of the system takes precedence over a saving error`() {
        ledger.begin(1, "task")
        ledger.save(1, .failure(NetworkError(code: .diskFull, phase: .saving, message: "full")))
        guard case .conclude(_, let ending) = ledger.end(1, .init(failure: Self.lost), "answer")
        else { return unmet("The task was not notified.") }
        #expect(ending.failure?.code == .connectionLost)
    }

    @Test func `an upload's response body is kept in memory up to a limit, then in a file`() {
        let portion = Data(repeating: 7, count: Ledger.mostInMemory / 2)
        #expect(ledger.receive(1, portion) == nil)
        #expect(ledger.receive(1, portion) == nil)
        let overflow = ledger.receive(1, portion)
        #expect(overflow?.bytes.count == portion.count * 3 && overflow?.file == nil)
        let file = Self.file()
        ledger.save(1, .success(file))
        let more = ledger.receive(1, Data([1]))
        #expect(more?.bytes == Data([1]) && more?.file === file)
        _ = ledger.setRule("rule")
        guard case .deliverOrphan(_, _, let ending) = ledger.end(1, .init(), "answer")
        else { return unmet("The orphan was not delivered.") }
        #expect(ending.body == nil && ending.file === file)
    }

    @Test func `a body that could not be written receives no more bytes and ends with that error`() {
        ledger.begin(1, "task")
        #expect(ledger.receive(1, Data(count: Ledger.mostInMemory + 1)) != nil)
        ledger.save(1, .failure(NetworkError(code: .diskFull, phase: .saving, message: "full")))
        #expect(ledger.receive(1, Data([1])) == nil)
        guard case .conclude(_, let ending) = ledger.end(1, .init(), "answer")
        else { return unmet("The task was not notified.") }
        #expect(ending.failure?.code == .diskFull && ending.body == nil && ending.file == nil)
    }

    @Test func `if too many orphans are held, the oldest are removed and their number is reported`() {
        var notices = 0
        weak var first: SpooledFile?
        for number in 0..<(Ledger.mostHeld + 3) {
            let file = Self.file()
            if number == 0 { first = file }
            ledger.save(number, .success(file))
            if case .hold(hasRemoved: true) = ledger.end(number, .init(), "\(number)") { notices += 1 }
        }
        #expect(notices == 3)
        #expect(first == nil, "The file of an orphan that was removed is still there.")
        let release = ledger.setRule("rule")
        #expect(release.orphans.map(\.0) == (3..<(Ledger.mostHeld + 3)).map { "\($0)" })
        #expect(release.removed == 3)
        let second = ledger.setRule("rule")
        #expect(second.orphans.isEmpty && second.removed == 0)
    }

    @Test func `resume data is kept for the same request, and is used once`() throws {
        ledger.begin(1, "task", try Self.key("a"))
        _ = ledger.end(1, .init(failure: Self.lost, resumeData: Data([1])), "answer")
        #expect(ledger.takeResumeData(for: try Self.key("b")) == nil)
        #expect(ledger.takeResumeData(for: try Self.key("a")) == Data([1]))
        #expect(ledger.takeResumeData(for: try Self.key("a")) == nil)
    }

    @Test func `resume data is kept for a limited number of requests, the newest ones`() throws {
        for number in 0...Ledger.mostResumable {
            let key = try Self.key("\(number)")
            _ = ledger.end(number, .init(failure: Self.lost, resumeData: Data([1]), key: key), "answer")
        }
        #expect(ledger.takeResumeData(for: try Self.key("0")) == nil)
        for number in 1...Ledger.mostResumable {
            #expect(ledger.takeResumeData(for: try Self.key("\(number)")) != nil)
        }
    }

    @Test(arguments: [false, true], [false, true])
    func `a continued download starts over only if the system refused its data`(_ isAccepted: Bool, _ hasData: Bool) {
        ledger.begin(1, "task", isContinuing: true)
        if isAccepted { ledger.accept(1) }
        let end = Ledger.End(failure: Self.lost, resumeData: hasData ? Data([1]) : nil)
        switch ledger.end(1, end, "answer") {
        case .startOver("task"): #expect(!isAccepted && !hasData)
        case .conclude("task", let ending): #expect((isAccepted || hasData) && ending.isContinued)
        default: unmet("The task was not notified.")
        }
        #expect(ledger.transfer(1) == nil)
    }

    @Test func `a continued download that was canceled does not start over`() {
        ledger.begin(1, "task", isContinuing: true)
        let cancelled = NetworkError(code: .cancelled, phase: .receiving, message: "cancelled")
        guard case .conclude = ledger.end(1, .init(failure: cancelled), "answer")
        else { return unmet("The download was started again.") }
    }

    /// The events that affect handlers.
    private enum Step { case keep(Int), end, finish, silence, longSilence }

    /// Plays steps and returns the handlers that each step called.
    private static func play(_ steps: [Step]) -> [[Int]] {
        var ledger = Ledger(), silences: [Ledger.Silence] = [], number = 0
        return steps.map { step -> [Int] in
            switch step {
            case .keep(let handler): silences.append(ledger.keep(handler))
            case .end:
                number += 1
                _ = ledger.end(number, .init(), "")
            case .finish: return ledger.finishEvents()
            case .silence, .longSilence:
                var called: [Int] = [], left: [Ledger.Silence] = [], limit = Duration.seconds(2)
                if case .longSilence = step { limit = .seconds(20) }
                // The timer is set again until nothing happens between two of its calls.
                for silence in silences {
                    guard silence.duration <= limit else {
                        left.append(silence)
                        continue
                    }
                    switch ledger.lookAgain(silence) {
                    case .call(let handler): called.append(handler)
                    case .wait(let silence): left.append(silence)
                    case .none: break
                    }
                }
                silences = left
                return called
            }
            return []
        }
    }

    @Test func `each order of wake events calls its handler once, when it is due`() {
        let table: [(order: String, steps: [Step], called: [[Int]])] = [
            ("Apple's order", [.keep(1), .end, .finish], [[], [], [1]]),
            ("two handlers, one finish", [.keep(1), .keep(2), .end, .finish], [[], [], [], [1, 2]]),
            ("a late handler", [.end, .finish, .keep(1), .silence], [[], [], [], [1]]),
            ("a late handler, no silence", [.finish, .keep(1), .finish], [[], [], [1]]),
            ("a second wake", [.keep(1), .finish, .keep(2), .end, .silence, .finish], [[], [1], [], [], [], [2]]),
            (
                "a finish without a handler, then a wake", [.finish, .keep(1), .end, .silence, .end, .finish],
                [[], [], [], [], [], [1]]
            ),
            (
                "the same, and the finish never comes", [.finish, .keep(1), .end, .silence, .silence],
                [[], [], [], [], [1]]
            ),
            (
                "a timer of an earlier wake", [.finish, .keep(1), .finish, .finish, .keep(2), .end, .silence, .finish],
                [[], [], [1], [], [], [], [], [2]]
            ),
            ("silence before an event", [.keep(1), .silence, .end, .finish], [[], [], [], [1]]),
            (
                "two late handlers in a row", [.finish, .keep(1), .end, .finish, .keep(2), .silence],
                [[], [], [], [1], [], [2]]
            ),
            (
                "one finish for two wakes, and a handler after it",
                [.keep(1), .end, .end, .finish, .keep(2), .silence, .longSilence], [[], [], [], [1], [], [], [2]]
            ),
        ]
        for row in table { #expect(Self.play(row.steps) == row.called, "order: \(row.order)") }
    }

    @Test func `in the documented order, a handler is called after the events of its wake`() {
        // Each wake has some events, and a handler before them, after them, or not at all.
        let wakes: [[Step]] = [0, 1, 2].flatMap { count -> [[Step]] in
            let events = [Step](repeating: .end, count: count)
            return [[.keep(0)] + events + [.finish], events + [.finish, .keep(0)], events + [.finish]]
        }
        for first in wakes {
            for second in wakes {
                for third in wakes {
                    var steps: [Step] = [], expected: Set<Int> = [], finishes: [Int: Int] = [:]
                    for (number, wake) in [first, second, third].enumerated() {
                        for step in wake {
                            if case .keep = step {
                                steps.append(.keep(number))
                                expected.insert(number)
                            } else {
                                if case .finish = step { finishes[number] = steps.count }
                                steps.append(step)
                            }
                        }
                    }
                    steps += [.silence, .silence]
                    let called = Self.play(steps)
                    #expect(called.joined().sorted() == expected.sorted(), "steps: \(steps)")
                    for (place, handlers) in called.enumerated() {
                        for handler in handlers { #expect(place >= finishes[handler] ?? .max, "steps: \(steps)") }
                    }
                }
            }
        }
    }

    private enum Event: CaseIterable {
        case setRule, removeRule, keep, finish, silence, orphanEnds, taskEnds, list, adopt
    }

    /// Plays a sequence and returns its first fault.
    private static func fault(in events: [Event], endsSilently: Bool) -> String? {
        var ledger = Ledger(), number = 0, kept = 0, silences: [Ledger.Silence] = []
        var orphans: [Int: SpooledFile] = [:], tasks: [Int: SpooledFile] = [:]
        var delivered: [Int: SpooledFile] = [:], concluded: [Int: SpooledFile] = [:], called: [Int] = []
        var running: Set<Int> = [], adopted: Set<Int> = []
        var faults: [String] = []

        func deliver(_ answer: String, _ ending: Ledger.Ending) {
            guard let number = Int(answer) else { return faults.append("an unknown orphan") }
            if delivered.updateValue(ending.file ?? Self.file(), forKey: number) != nil {
                faults.append("an orphan twice")
            }
        }
        func end(_ number: Int) {
            let file = Self.file()
            ledger.save(number, .success(file))
            let isTask = ledger.transfer(number) != nil
            if isTask { tasks[number] = file } else { orphans[number] = file }
            switch ledger.end(number, .init(), "\(number)") {
            case .hold: if isTask { faults.append("the end of a task was held") }
            case .conclude(let task, let ending):
                if !isTask || task != "\(number)" { faults.append("the wrong task") }
                if concluded.updateValue(ending.file ?? Self.file(), forKey: number) != nil {
                    faults.append("a task ended twice")
                }
            case .startOver: faults.append("started over")
            case .deliverOrphan(_, let answer, let ending): deliver(answer, ending)
            }
        }
        func play(_ event: Event) {
            switch event {
            case .setRule: for (answer, ending) in ledger.setRule("rule").orphans { deliver(answer, ending) }
            case .removeRule: if !ledger.setRule(nil).orphans.isEmpty { faults.append("delivered to no rule") }
            case .keep:
                kept += 1
                silences.append(ledger.keep(kept))
            case .finish: called += ledger.finishEvents()
            case .silence:
                let looked = silences
                silences = []
                for silence in looked {
                    switch ledger.lookAgain(silence) {
                    case .call(let handler): called.append(handler)
                    case .wait(let silence): silences.append(silence)
                    case .none: break
                    }
                }
            case .orphanEnds:
                number += 1
                end(running.subtracting(adopted).min() ?? 1_000 + number)
                running = running.filter { orphans[$0] == nil }
            case .taskEnds:
                number += 1
                let task = adopted.filter { tasks[$0] == nil }.min() ?? number
                if !adopted.contains(task) { ledger.begin(task, "\(task)") }
                end(task)
            case .list:
                number += 1
                ledger.beginListing()
                // The system may still list a transfer that ends meanwhile.
                let ending = running.subtracting(adopted).min()
                if let ending {
                    running.remove(ending)
                    end(ending)
                }
                // The ledger must not return transfers for which a task already waits.
                let waited = adopted.filter { tasks[$0] == nil }
                let found = ledger.list([2_000 + number] + (ending.map { [$0] } ?? []) + waited)
                if found != [2_000 + number] { faults.append("listed: \(found)") }
                running.formUnion(found)
            case .adopt:
                guard let transfer = running.subtracting(adopted).min() else { return }
                if !ledger.adopt(transfer, "\(transfer)") { faults.append("a running transfer cannot be attached") }
                if ledger.adopt(transfer, "other") { faults.append("attached twice") }
                if ledger.adopt(9_999, "unlisted") { faults.append("attached without being listed") }
                adopted.insert(transfer)
            }
        }
        for event in events { play(event) }
        // At the end, the system either reports that it has finished or is silent.
        for event in [Event.setRule] + (endsSilently ? [.silence, .silence] : [.finish]) { play(event) }

        if delivered.keys.sorted() != orphans.keys.sorted() { faults.append("orphans: \(delivered.keys)") }
        if concluded.keys.sorted() != tasks.keys.sorted() { faults.append("tasks: \(concluded.keys)") }
        for (number, file) in delivered where orphans[number] !== file { faults.append("the file of another orphan") }
        for (number, file) in concluded where tasks[number] !== file { faults.append("the file of another task") }
        if called.sorted() != Array(1..<(kept + 1)) { faults.append("handlers: \(called) of \(kept)") }
        return faults.first
    }

    @Test func `in all sequences of events, each orphan, handler, task and file is delivered exactly once`() {
        let all = Event.allCases
        for length in 0...Rounds.count(ci: 5, soak: 6) {
            var places = [Int](repeating: 0, count: length)
            sequences: while true {
                let events = places.map { all[$0] }
                for endsSilently in [false, true] {
                    if let fault = Self.fault(in: events, endsSilently: endsSilently) {
                        return unmet("\(fault): \(events), silent: \(endsSilently)")
                    }
                }
                for place in places.indices {
                    places[place] += 1
                    if places[place] < all.count { continue sequences }
                    places[place] = 0
                }
                break
            }
        }
    }
}
