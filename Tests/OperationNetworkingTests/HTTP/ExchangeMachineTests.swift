// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

private enum Origin: ExchangeSource {
    case flight
    case kept
    case nowhere

    var isFlight: Bool { self == .flight }
}

private let head = ResponseHead(url: URL(fileURLWithPath: "/"), status: 200, headers: [:])

private typealias Machine = ExchangeMachine<Origin, String, Int>

/// A state of the machine, and the calls that lead to it.
private enum Place: String, CaseIterable {
    case waiting, preparing, awaitingHead, deciding, broken, draining, keepingHead, delivering, reading, ended

    /// A machine in this state.
    ///
    /// Its step is 1 from `preparing` on.
    var machine: Machine {
        var machine = Machine()
        guard self != .waiting else { return machine }
        _ = machine.resume()
        _ = machine.advance()
        if ![.waiting, .preparing, .reading, .ended].contains(self) { _ = machine.requestWasSent(.flight, 1) }
        switch self {
        case .waiting, .preparing, .awaitingHead: break
        case .deciding: _ = machine.asksRule(.flight, 1)
        case .broken:
            _ = machine.asksRule(.flight, 1)
            _ = machine.ended(NetworkError(code: .connectionLost, phase: .receiving, message: ""), 1)
        case .draining: _ = machine.leaves(.flight, for: "next", 7, 1)
        case .keepingHead:
            machine.suspend()
            _ = machine.delivers(.flight, head, 7, 1)
        case .delivering: _ = machine.delivers(.flight, head, 7, 1)
        case .reading: _ = machine.delivers(.kept, head, nil, 1)
        case .ended: _ = machine.finish()
        }
        return machine
    }
}

private let events: [(name: String, apply: @Sendable (inout Machine, Int) -> String)] = [
    ("resume", { machine, _ in "\(machine.resume())" }),
    ("release", { machine, _ in "\(machine.release(.receiver))" }),
    ("advance", { machine, _ in machine.advance().map { "\($0)" } ?? "-" }),
    ("requestWasSent", { machine, step in machine.requestWasSent(.flight, step) ? "yes" : "-" }),
    ("headArrived", { machine, step in machine.headArrived(step).map { "\($0)" } ?? "-" }),
    ("asksRule", { machine, step in machine.asksRule(.flight, step) ? "yes" : "-" }),
    ("delivers", { machine, step in describe(machine.delivers(.flight, head, nil, step)) }),
    ("delivers kept", { machine, step in describe(machine.delivers(.kept, head, nil, step)) }),
    ("delivers own", { machine, step in describe(machine.delivers(.nowhere, head, nil, step)) }),
    ("deliversHead", { machine, _ in machine.deliversHead() == nil ? "-" : "yes" }),
    ("leaves", { machine, step in describe(machine.leaves(.flight, for: "x", nil, step)) }),
    ("leaves kept", { machine, step in describe(machine.leaves(.kept, for: "x", nil, step)) }),
    ("bytes", { machine, step in describe(machine.received(5, limit: 10, drainLimit: 10, step)) }),
    ("end", { machine, step in describe(machine.ended(nil, step)) }),
    ("failsOver", { machine, step in machine.failsOver(step) ? "yes" : "-" }),
    ("forwards", { machine, step in machine.forwards(step) ? "yes" : "-" }),
    ("reads", { machine, step in machine.startsReading() == nil ? "-" : "yes" }),
    ("finish", { machine, _ in machine.finish().map { "copy \($0.copy ?? 0) \($0.isAnswer)" } ?? "-" }),
]

private func describe(_ action: Machine.Delivery) -> String {
    switch action {
    case .drop: "-"
    case .deliverHead: "head"
    case .keep: "keep"
    case .deliverKept(let error): "tell kept" + (error.map { ", \($0.code)" } ?? "")
    case .finish(let error): "\(error.code)"
    }
}

private func describe(_ action: Machine.Leaving) -> String { action == .drop ? "-" : "\(action)" }

private func describe(_ action: Machine.Bytes) -> String {
    switch action {
    case .ignore: "-"
    case .discard(let copy, let isEnough): "discard \(copy ?? 0) \(isEnough)"
    case .tooMany: "too many"
    case .tooSoon: "too soon"
    case .handOver(let copy): "hand over \(copy ?? 0)"
    }
}

private func describe(_ action: Machine.End) -> String {
    switch action {
    case .ignore: "-"
    case .finish: "finish"
    case .startNext(let next, let copy): "\(next) \(copy ?? 0)"
    case .failed(let source): "failed \(source)"
    }
}

/// The name of the state that a machine is in.
private func state(of machine: Machine) -> String {
    let state = Mirror(reflecting: machine).descendant("state").map { "\($0)" } ?? ""
    return String(state.prefix { $0.isLetter })
}

/// Unlike the macro, this function accepts expressions that mutate a machine.
private func expect(_ isTrue: Bool, location: SourceLocation = #_sourceLocation) {
    #expect(isTrue, sourceLocation: location)
}

struct ExchangeMachineTests {
    /// The results of a delivery in each state, which are the same for every source.
    private static let deliveries = [
        "-", "head > delivering", "head > delivering", "tell kept > keepingHead",
        "tell kept, connectionLost > keepingHead", "-", "-", "-", "-", "-",
    ]

    /// The result of each event in each state: the action, and the new state if it changes.
    private static let table: [String: [String]] = [
        // waiting, preparing, awaitingHead, deciding, broken, draining, keepingHead, delivering, reading, ended
        "resume": [
            "start > preparing", "read", "order", "order", "order", "order", "answer", "order", "read", "read",
        ],
        "release": [
            "read", "read", "order", "order", "order", "order", "answer", "order", "read", "read",
        ],
        "advance": ["1", "2", "2", "2", "2", "2", "2", "2", "2", "-"],
        "requestWasSent": ["-", "yes > awaitingHead", "-", "-", "-", "-", "-", "-", "-", "-"],
        "headArrived": ["-", "-", "flight", "-", "-", "-", "-", "-", "-", "-"],
        "asksRule": ["-", "yes > deciding", "yes > deciding", "-", "-", "-", "-", "-", "-", "-"],
        "delivers": deliveries, "delivers kept": deliveries, "delivers own": deliveries,
        "deliversHead": ["-", "-", "-", "-", "-", "-", "-", "-", "-", "-"],
        "leaves": [
            "-", "drain > draining", "drain > draining", "drain > draining", "startNext > preparing", "-", "-", "-",
            "-",
            "-",
        ],
        "leaves kept": [
            "-", "startNext", "startNext > preparing", "startNext > preparing", "startNext > preparing", "-", "-", "-",
            "-", "-",
        ],
        "bytes": ["-", "-", "-", "-", "-", "discard 7 false", "too soon", "hand over 7", "hand over 0", "-"],
        "end": ["-", "-", "failed flight", "-", "-", "next 7 > preparing", "finish", "finish", "finish", "-"],
        "failsOver": ["-", "-", "yes > preparing", "-", "-", "-", "-", "-", "-", "-"],
        "forwards": ["-", "-", "yes", "-", "-", "-", "-", "yes", "yes", "-"],
        "reads": ["-", "-", "-", "-", "-", "-", "-", "-", "yes", "-"],
        "finish": [
            "copy 0 false > ended", "copy 0 false > ended", "copy 0 false > ended", "copy 0 false > ended",
            "copy 0 false > ended", "copy 7 false > ended", "copy 7 false > ended", "copy 7 true > ended",
            "copy 0 true > ended", "-",
        ],
    ]

    @Test func `each event in each state has the result in the table`() throws {
        for event in events {
            let row = try #require(Self.table[event.name], "\(event.name)")
            try #require(row.count == Place.allCases.count, "\(event.name)")
            for (place, expected) in zip(Place.allCases, row) {
                var machine = place.machine
                let before = state(of: machine)
                // The step of a machine that never started is 0, and no event has that number.
                var seen = event.apply(&machine, 1)
                let after = state(of: machine)
                if after != before { seen += " > \(after)" }
                #expect(seen == expected, "\(event.name) in \(place)")
            }
        }
        #expect(Self.table.count == events.count)
    }

    @Test func `an event of an earlier step changes nothing`() {
        let bound: Set = [
            "requestWasSent", "headArrived", "asksRule", "delivers", "delivers kept", "delivers own", "leaves",
            "leaves kept", "bytes", "end", "failsOver", "forwards",
        ]
        for event in events where bound.contains(event.name) {
            for place in Place.allCases {
                for step in [0, 2] {
                    if place == .waiting, step == 0 { continue }
                    var machine = place.machine
                    let before = state(of: machine)
                    #expect(event.apply(&machine, step) == "-", "\(event.name) in \(place)")
                    #expect(state(of: machine) == before)
                }
            }
        }
    }

    @Test func `the order for a task combines suspend and all holds`() throws {
        var machine = Place.delivering.machine
        func wanted() -> [Bool?]? { machine.wanted.map { [$0.order.isSuspended, $0.order.isHeld] } }
        expect(wanted() == [false, false])
        machine.set(.receiver)
        machine.set(.cache)
        expect(wanted() == [false, true])
        expect(machine.release(.cache) == .order)
        expect(wanted() == [false, true])
        machine.suspend()
        expect(machine.release(.receiver) == .order)
        expect(wanted() == [true, false])
        expect(machine.resume() == .order)
        expect(wanted() == [false, false])
        expect(Place.reading.machine.wanted == nil && Place.preparing.machine.wanted == nil)
    }

    @Test func `each new order for a task has a larger number`() throws {
        var machine = Place.delivering.machine
        var numbers = [try #require(machine.wanted?.order.number)]
        let changes: [(inout Machine) -> Void] = [
            { $0.suspend() }, { _ = $0.resume() }, { $0.set(.receiver) }, { _ = $0.release(.receiver) },
        ]
        for change in changes {
            change(&machine)
            numbers.append(try #require(machine.wanted?.order.number))
        }
        #expect(Set(numbers).count == 5 && numbers == numbers.sorted())
        // The task of a later request also receives every order.
        let started = try #require(Place.awaitingHead.machine.wanted)
        #expect(started.order.number > 0 && !started.order.isSuspended)
    }

    @Test func `an order that arrives late changes nothing`() {
        func order(_ number: Int, isSuspended: Bool, isHeld: Bool? = nil) -> PauseOrder {
            PauseOrder(number: number, isSuspended: isSuspended, isHeld: isHeld)
        }
        var machine = Machine()
        expect(machine.follow(order(2, isSuspended: true)) == .order)
        expect(machine.follow(order(1, isSuspended: false)) == nil)
        expect(machine.follow(order(3, isSuspended: false)) == .start)
        machine = Place.delivering.machine
        machine.set(.receiver)
        expect(machine.follow(order(1, isSuspended: false)) == .order && machine.wanted?.order.isHeld == true)
        expect(machine.follow(order(2, isSuspended: false, isHeld: false)) == .order)
        expect(machine.wanted?.order.isHeld == false)
        expect(machine.follow(order(3, isSuspended: true, isHeld: true)) == .order)
        expect(machine.wanted?.order.isSuspended == true && machine.wanted?.order.isHeld == true)
    }

    @Test func `a response is held while a policy decides, and released with the decision`() {
        var machine = Place.deciding.machine
        expect(machine.wanted?.order.isHeld == true)
        expect(machine.beingDecided(1) == .flight && machine.beingDecided(2) == nil)
        var other = machine
        expect(describe(machine.delivers(.flight, head, nil, 1)) == "tell kept")
        expect(machine.wanted?.order.isHeld == true && machine.headWasDelivered() == nil)
        expect(machine.deliversHead() != nil && machine.wanted?.order.isHeld == true)
        expect(machine.headWasDelivered() == .order && machine.headWasDelivered() == nil)
        expect(machine.wanted?.order.isHeld == false)
        _ = other.leaves(.flight, for: "x", nil, 1)
        expect(other.wanted?.order.isHeld == false)
    }

    @Test func `headers that arrive while suspended or held are delivered once, after the last release`() {
        for source in [Origin.flight, .kept, .nowhere] {
            for isAsked in [false, true] {
                var machine = Place.preparing.machine
                if isAsked { expect(machine.asksRule(source, 1)) }
                machine.suspend()
                machine.set(.receiver)
                expect(describe(machine.delivers(source, head, nil, 1)) == "keep")
                expect(machine.startsReading() == nil && machine.phase == .receiving)
                expect(machine.release(.receiver) == .answer && machine.deliversHead() == nil)
                expect(machine.resume() == .answer)
                // The body is held until the headers were delivered.
                if source == .flight { expect(machine.wanted?.order.isHeld == true) }
                expect(machine.deliversHead() != nil && machine.deliversHead() == nil)
                expect(machine.startsReading() == nil)
                expect(machine.headWasDelivered() == (source == .flight ? .order : .read))
                expect((machine.startsReading() != nil) == (source != .flight))
            }
        }
    }

    @Test func `a hold that is set just before the headers are delivered keeps them back`() {
        for source in [Origin.flight, .kept, .nowhere] {
            var machine = Place.preparing.machine
            expect(machine.asksRule(source, 1))
            expect(describe(machine.delivers(source, head, nil, 1)) == "tell kept")
            machine.set(.receiver)
            expect(machine.deliversHead() == nil && machine.headWasDelivered() == nil)
            expect(machine.release(.receiver) == .answer)
            expect(machine.deliversHead() != nil && machine.headWasDelivered() != nil)
        }
    }

    @Test func `a failure takes precedence over headers that cannot be delivered yet`() {
        var broken = Place.broken.machine
        broken.suspend()
        expect(describe(broken.delivers(.flight, head, nil, 1)) == "connectionLost")
        var keepingHead = Place.keepingHead.machine
        let error = NetworkError(code: .connectionLost, phase: .receiving, message: "")
        expect(describe(keepingHead.ended(error, 1)) == "finish")
    }

    @Test func `only one reader reads from the cache, and none while suspended or held`() {
        var machine = Place.reading.machine
        expect(machine.startsReading()?.step == 1)
        expect(machine.startsReading() == nil)
        machine.set(.receiver)
        expect(!machine.reads(1))
        expect(machine.startsReading() == nil)
        expect(machine.release(.receiver) == .read)
        expect(machine.startsReading() != nil)
        expect(machine.reads(1))
        machine.suspend()
        expect(machine.startsReading() == nil)
    }

    @Test func `body bytes are limited, and the drain limit is reported once`() {
        var delivering = Place.delivering.machine
        expect(describe(delivering.received(10, limit: 10, drainLimit: 0, 1)) == "hand over 7")
        expect(describe(delivering.received(1, limit: 10, drainLimit: 0, 1)) == "too many")
        var draining = Place.draining.machine
        expect(describe(draining.received(10, limit: 0, drainLimit: 10, 1)) == "discard 7 false")
        expect(describe(draining.received(1, limit: 0, drainLimit: 10, 1)) == "discard 7 true")
        expect(describe(draining.received(1, limit: 0, drainLimit: 10, 1)) == "discard 7 false")
    }

    @Test func `upload progress never decreases, even across several requests`() {
        var machine = Place.awaitingHead.machine
        expect(machine.sent(5, 1))
        expect(!machine.sent(5, 1) && !machine.sent(3, 1))
        expect(machine.headArrived(1) == .flight)
        expect(machine.leaves(.flight, for: "x", nil, 1) == .drain)
        _ = machine.ended(nil, 1)
        expect(machine.advance() == 2 && machine.requestWasSent(.flight, 2))
        expect(!machine.sent(5, 2) && machine.sent(6, 2))
        expect(machine.finish()?.wasAnswered == true)
        expect(!machine.sent(7, 2))
    }
}
