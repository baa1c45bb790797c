// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SlotTableTests {
    private typealias Table = SlotTable<Int>

    private func table(perHost: Int = 2, total: Int = 3, lookups: Int = 1) -> Table {
        Table(perHost: perHost, total: total, lookups: lookups)
    }

    private func grants(_ table: inout Table) -> [Int] {
        var tickets: [Int] = []
        while let grant = table.next() { tickets.append(grant.ticket) }
        return tickets
    }

    @Test func `hosts take turns, and each line keeps its order`() {
        var table = table()
        for ticket in 0..<4 { _ = table.enter(ticket, host: "a", isNumeric: true) }
        for ticket in 10..<14 { _ = table.enter(ticket, host: "b", isNumeric: true) }
        #expect(grants(&table) == [0, 10, 1])
        table.release(0)
        #expect(grants(&table) == [11])
        table.release(1)
        table.release(1)
        #expect(grants(&table).sorted() == [2, 12])
    }

    @Test func `a task that leaves the line is skipped`() {
        var table = table(perHost: 1)
        _ = table.enter(0, host: "a", isNumeric: true)
        let place = table.enter(1, host: "a", isNumeric: true)
        _ = table.enter(2, host: "a", isNumeric: true)
        #expect(grants(&table) == [0])
        #expect(table.leave(place) == 1)
        #expect(table.leave(place) == nil)
        table.release(0)
        #expect(grants(&table) == [2])
    }

    @Test func `a task ahead of the line gets a slot beyond the limit, and may leave`() {
        var table = table(perHost: 1, total: 1)
        for ticket in 0..<3 { _ = table.enter(ticket, host: "a", isNumeric: true) }
        #expect(grants(&table) == [0])
        _ = table.enter(10, host: "a", isNumeric: true, isAhead: true)
        let place = table.enter(11, host: "b", isNumeric: true, isAhead: true)
        #expect(table.leave(place) == 11)
        #expect(grants(&table) == [10] && table.activeCount == 2)
        table.release(0)
        #expect(grants(&table) == [], "the other task still has a slot")
        table.release(0)
        #expect(grants(&table) == [1])
    }

    @Test func `at most two tasks of a host are ahead at a time, and others wait`() {
        var table = table(perHost: 1, total: 1)
        _ = table.enter(0, host: "a", isNumeric: true)
        #expect(grants(&table) == [0])
        let places = (10..<14).map { table.enter($0, host: "a", isNumeric: true, isAhead: true) }
        _ = table.enter(20, host: "b", isNumeric: true, isAhead: true)
        #expect(table.leave(places[0]) == 10)
        _ = table.enter(14, host: "a", isNumeric: true, isAhead: true)
        #expect(grants(&table) == [11, 20, 14])
        table.release(0, isAhead: true)
        _ = table.enter(15, host: "a", isNumeric: true, isAhead: true)
        #expect(grants(&table) == [15], "the two tasks in the line stay there")
        for isAhead in [true, true] { table.release(0, isAhead: isAhead) }
        table.release(1, isAhead: true)
        #expect(grants(&table) == [])
        table.release(0)
        #expect(grants(&table) == [12])
        table.release(0)
        #expect(grants(&table) == [13])
    }

    @Test func `a host has one name lookup at a time, and the total is limited`() {
        var table = table(perHost: 2, total: 9, lookups: 1)
        for ticket in 0..<2 { _ = table.enter(ticket, host: "a", isNumeric: false) }
        for ticket in 10..<12 { _ = table.enter(ticket, host: "b", isNumeric: false) }
        #expect(grants(&table) == [0])
        table.resolved(0)
        #expect(grants(&table).sorted() == [1, 10])
        // The lookup failed.
        table.release(1)
        #expect(grants(&table) == [11])
        table.resolved(1)
        table.release(0)
        table.release(0)
        table.release(1)
        table.forgetNames()
        for ticket in 20..<22 { _ = table.enter(ticket, host: "a", isNumeric: false) }
        #expect(grants(&table) == [20])
    }

    @Test func `raising the limit of a host grants more slots`() {
        var table = table(perHost: 1, total: 9)
        for ticket in 0..<3 { _ = table.enter(ticket, host: "a", isNumeric: true) }
        #expect(grants(&table) == [0])
        table.setLimit(3, host: 0)
        #expect(grants(&table) == [1, 2])
    }

    @Test(arguments: 0..<50)
    func `no limit is exceeded, and every task gets a slot`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var table = table(perHost: 3, total: 5, lookups: 2)
        var active: [(host: Int, name: Int, isNew: Bool)] = []
        var waiting: Set<Int> = []
        var seen = 0
        var last = 0
        for step in 0..<2000 {
            switch Int.random(in: 0..<4, using: &generator) {
            case 0,
                1 where step < 1000:
                let host = Int.random(in: 0..<400, using: &generator) % Int.random(in: 1...400, using: &generator)
                last += 1
                waiting.insert(last)
                _ = table.enter(last * 1000 + host, host: "\(host)", isNumeric: host % 2 == 0)
            case 2 where !active.isEmpty:
                let index = Int.random(in: 0..<active.count, using: &generator)
                table.resolved(active[index].host)
            default:
                guard !active.isEmpty else { break }
                table.release(active.remove(at: Int.random(in: 0..<active.count, using: &generator)).host)
            }
            while let grant = table.next() {
                active.append((grant.slot.host, grant.ticket % 1000, true))
                seen += 1
                #expect(waiting.remove(grant.ticket / 1000) != nil)
            }
            #expect(active.count <= 5 && table.activeCount == active.count)
            #expect(Dictionary(grouping: active, by: \.name).values.allSatisfy { $0.count <= 3 })
        }
        while !active.isEmpty {
            table.release(active.removeLast().host)
            while let grant = table.next() {
                active.append((grant.slot.host, grant.ticket % 1000, true))
                waiting.remove(grant.ticket / 1000)
            }
        }
        #expect(waiting.isEmpty)
    }

    @Test func `unused hosts are removed when there are many`() {
        var table = table(total: 1)
        _ = table.enter(-1, host: "busy", isNumeric: true)
        #expect(grants(&table) == [-1])
        for number in 0..<1_000 {
            let place = table.enter(number, host: "h\(number)", isNumeric: true)
            #expect(table.leave(place) == number)
        }
        table.release(0)
        #expect(grants(&table) == [])
        #expect(table.hostCount <= 256)
        _ = table.enter(7, host: "h7", isNumeric: true)
        #expect(grants(&table) == [7])
    }

    @Test func `a name lookup continues while another transfer to the same host ends`() {
        var table = table(perHost: 2, total: 9, lookups: 1)
        _ = table.enter(0, host: "a", isNumeric: false)
        let first = table.next()
        #expect(first?.looksUp == true)
        table.resolved(0)
        table.forgetNames()
        _ = table.enter(1, host: "a", isNumeric: false)
        #expect(table.next()?.looksUp == true)
        _ = table.enter(2, host: "b", isNumeric: false)
        table.release(0, endsLookup: false)
        #expect(grants(&table) == [])
        table.release(0, endsLookup: true)
        #expect(grants(&table) == [2])
    }
}

extension SlotTable {
    /// Releases a slot of a host.
    mutating func release(_ host: Int, endsLookup: Bool = true, isAhead: Bool = false) {
        release(Slot(host: host, isAhead: isAhead), endsLookup: endsLookup)
    }
}
