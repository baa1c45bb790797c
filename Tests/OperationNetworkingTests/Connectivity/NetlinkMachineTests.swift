// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

/// Tests the queries to the kernel, and when its messages are trusted.
@Suite(.timeLimit(.minutes(Rounds.minutes)))
struct NetlinkMachineTests {
    private static let port: UInt32 = 99
    private let port = Self.port

    private func requests(_ actions: [NetlinkMachine.Action]) -> [UInt16] {
        actions.compactMap { action in
            guard case .send(let bytes) = action else { return nil }
            return UInt16(bytes[4]) | UInt16(bytes[5]) << 8
        }
    }

    /// Returns a machine that has finished its queries and found one default route.
    private func settled() -> NetlinkMachine {
        var machine = NetlinkMachine(port: port, need: .defaultRoute)
        _ = machine.begin()
        let contents: [(NetlinkWriter) -> [UInt8]] = [
            { $0.link(2, "eth0", flags: 0x1043) }, { $0.address(2, [192, 0, 2, 1]) }, { $0.route(link: 2) },
        ]
        for (index, content) in contents.enumerated() {
            let writer = NetlinkWriter(sequence: UInt32(index + 1), port: port)
            _ = machine.receive((content(writer) + writer.done())[...])
        }
        return machine
    }

    @Test func `the machine asks for links, addresses and routes, and then reports the state`() {
        var machine = NetlinkMachine(port: NetlinkRecording.port, need: .defaultRoute)
        #expect(requests(machine.begin()) == [18])
        var actions: [NetlinkMachine.Action] = []
        for datagram in NetlinkRecording.links { actions += machine.receive(datagram[...]) }
        #expect(requests(actions) == [22])
        for datagram in NetlinkRecording.addresses { actions += machine.receive(datagram[...]) }
        #expect(requests(actions) == [22, 26])
        #expect(!actions.contains(.notify(.unsatisfied)))
        actions = []
        for datagram in NetlinkRecording.routes { actions += machine.receive(datagram[...]) }
        #expect(actions == [.notify(Connectivity(.satisfied, interfaces: [.wired]))])
        #expect(machine.isSettled)
    }

    @Test func `a change that can remove routes causes a new query before the state is reported`() {
        let silent = NetlinkWriter()
        let changes: [[UInt8]] = [
            silent.link(2, "eth0", flags: 0x1002), silent.link(2, "eth0", flags: 0x1003),
            silent.link(2, "eth0", flags: 0, isGone: true),
            silent.address(2, [192, 0, 2, 1], isGone: true), silent.route(link: 2, isGone: true), silent.route(link: 3),
        ]
        for change in changes {
            var machine = settled()
            let actions = machine.receive(change[...])
            #expect(requests(actions) == [26])
            #expect(actions.count == 1, "nothing was reported")
            #expect(
                machine.receive(NetlinkWriter(sequence: 4, port: port).done()[...]) == [.notify(.unsatisfied)])
        }
    }

    @Test func `a change that cannot remove routes is reported immediately`() {
        var machine = settled()
        let silent = NetlinkWriter()
        let wired = Connectivity(.satisfied, interfaces: [.wired])
        #expect(machine.receive(silent.address(2, [192, 0, 2, 2])[...]) == [.notify(wired)])
        #expect(machine.receive(silent.link(2, "eth0", flags: 0x11043)[...]) == [.notify(wired)])
        // This route is not a default route.
        #expect(machine.receive(silent.route(prefixLength: 24, link: 2)[...]) == [])
        #expect(machine.receive(silent.route(table: 255, link: 2)[...]) == [])
    }

    @Test func `the end of a response to another socket or query does not end this query`() {
        var machine = NetlinkMachine(port: port, need: .defaultRoute)
        _ = machine.begin()
        #expect(machine.receive(NetlinkWriter(sequence: 1, port: port + 1).done()[...]) == [])
        #expect(machine.receive(NetlinkWriter(sequence: 9, port: port).done()[...]) == [])
        #expect(machine.question == .links)
    }

    @Test func `after lost or damaged messages, everything is queried again`() {
        var machine = settled()
        machine.messagesWereLost()
        // Later messages may be lost, too, until everything was read.
        #expect(machine.receive(NetlinkWriter().link(2, "eth0", flags: 0x1002)[...]) == [])
        #expect(!machine.isSettled)
        #expect(requests(machine.wasReadEmpty()) == [18])
        machine = settled()
        #expect(machine.receive([1, 2, 3]) == [])
        #expect(requests(machine.wasReadEmpty()) == [18])
        machine = settled()
        #expect(machine.receive(NetlinkWriter().message(4, [])[...]) == [])
        #expect(requests(machine.wasReadEmpty()) == [18])
        // While a query is open, no other query is sent, and its response is ignored.
        machine.messagesWereLost()
        #expect(machine.receive(NetlinkWriter(sequence: 4, port: port).done()[...]) == [])
        #expect(requests(machine.wasReadEmpty()) == [18])
    }

    @Test func `a query with a lost response is sent again after everything was read, up to a limit`() {
        var machine = NetlinkMachine(port: port, need: .defaultRoute)
        _ = machine.begin()
        for _ in 0..<9 {
            machine.messagesWereLost()
            #expect(requests(machine.wasReadEmpty()) == [18])
        }
        #expect(machine.receive(NetlinkWriter(sequence: 10, port: port).done()[...]).count == 1, "answered")
        for _ in 0..<999 { #expect(requests(machine.wasReadEmpty()) == [18]) }
        #expect(machine.wasReadEmpty() == [.giveUp(105)])
    }

    @Test func `a query with a disturbed response is sent again, up to a limit`() {
        var machine = NetlinkMachine(port: port, need: .defaultRoute)
        _ = machine.begin()
        var asked = 0
        var sequence: UInt32 = 1
        while machine.question == .links {
            _ = machine.receive(NetlinkWriter().link(2, "eth0", flags: 0x1043)[...])
            asked += requests(machine.receive(NetlinkWriter(sequence: sequence, port: port).done()[...])).count
            sequence += 1
        }
        #expect(asked == 6)
        var inconsistent = NetlinkWriter(sequence: sequence, port: port)
        inconsistent.flags = 0x10
        let datagram = inconsistent.address(2, [192, 0, 2, 1]) + NetlinkWriter(sequence: sequence, port: port).done()
        #expect(requests(machine.receive(datagram[...])) == [22])
    }

    @Test func `the machine gives up after repeated refusals`() {
        var machine = NetlinkMachine(port: port, need: .defaultRoute)
        _ = machine.begin()
        var actions: [NetlinkMachine.Action] = []
        for sequence in 1...UInt32(10) {
            actions = machine.receive(NetlinkWriter(sequence: sequence, port: port).refused(1)[...])
            if sequence < 10 { #expect(actions == [] && requests(machine.wasReadEmpty()) == [18]) }
        }
        #expect(actions == [.giveUp(1)])
        #expect(machine.receive(NetlinkWriter(sequence: 10, port: port).refused(0)[...]) == [])
        // Later messages are incomplete, so no state may be reported.
        #expect(machine.receive(NetlinkWriter().address(2, [192, 0, 2, 1])[...]) == [])
        machine.messagesWereLost()
        #expect(machine.wasReadEmpty() == [])
    }

    @Test func `a query that could not be sent is sent again after a pause, up to a limit`() {
        var machine = NetlinkMachine(port: port, need: .defaultRoute)
        #expect(requests(machine.begin()) == [18])
        for _ in 0..<9 {
            #expect(machine.sendingFailed(1) == [])
            #expect(machine.receive(NetlinkWriter().address(2, [192, 0, 2, 1])[...]) == [], "the state is incomplete")
            #expect(machine.wasReadEmpty() == [], "no query before the pause ends")
            machine.messagesWereLost()
            #expect(machine.isPausing && machine.wasReadEmpty() == [])
            machine.pauseIsOver()
            #expect(requests(machine.wasReadEmpty()) == [18])
        }
        #expect(machine.sendingFailed(1) == [.giveUp(1)])
        #expect(machine.wasReadEmpty() == [])
    }

    @Test func `constantly changing links are accepted as they are, and queried again after a pause`() {
        var machine = NetlinkMachine(port: port, need: .defaultRoute)
        _ = machine.begin()
        var sequence: UInt32 = 1
        func answer() -> [NetlinkMachine.Action] {
            defer { sequence += 1 }
            return machine.receive(NetlinkWriter(sequence: sequence, port: port).done()[...])
        }
        while machine.question == .links {
            _ = machine.receive(NetlinkWriter().link(2, "eth0", flags: 0x1043)[...])
            _ = answer()
        }
        #expect(requests(answer()) == [26])
        let actions = answer()
        #expect(actions == [.notify(.unsatisfied), .pause] && !machine.isSettled)
        #expect(machine.wasReadEmpty() == [], "no query before the pause ends")
        machine.pauseIsOver()
        #expect(requests(machine.wasReadEmpty()) == [18])
        for _ in 0..<2 { _ = answer() }
        #expect(answer() == [.notify(.unsatisfied)])
        #expect(machine.isSettled)
    }

    @Test func `constantly changing tables are queried a limited number of times, and changes are still reported`() {
        var machine = settled()
        var sequence: UInt32 = 4, asked = 0, told = 0
        for _ in 0..<10 {
            // Routes appear and disappear during every response.
            var actions = machine.receive(NetlinkWriter().route(link: 3)[...])
            var isPaused = false
            while !isPaused {
                asked += requests(actions).count
                told += actions.count { $0 == .notify(Connectivity(.unsatisfied)) }
                isPaused = actions.contains(.pause)
                guard !isPaused, machine.question != nil else { break }
                _ = machine.receive(NetlinkWriter().route(link: 3, isGone: asked % 2 == 0)[...])
                actions = machine.receive(NetlinkWriter(sequence: sequence, port: port).done()[...])
                sequence += 1
            }
            #expect(isPaused && machine.isPausing)
            // Changes during the pause cause no query, and the unplugged cable is reported.
            #expect(machine.receive(NetlinkWriter().route(link: 3)[...]) != [.pause])
            #expect(requests(machine.receive(NetlinkWriter().link(2, "eth0", flags: 0x1002)[...])) == [])
            machine.pauseIsOver()
            actions = machine.wasReadEmpty()
            #expect(requests(actions) == [18])
            asked += 1
            while let question = machine.question, question != .routes {
                actions = machine.receive(NetlinkWriter(sequence: sequence, port: port).done()[...])
                asked += requests(actions).count
                sequence += 1
            }
        }
        #expect(asked <= 10 * 9 && told >= 10, "\(asked) and \(told)")
    }

    @Test func `despite random changes and lost messages, the machine ends with the true state`() {
        for seed in 0..<UInt64(Rounds.count(ci: 600, soak: 200_000)) {
            var generator = SeededGenerator(seed: Rounds.firstSeed &+ seed)
            var kernel = KernelModel(room: Int.random(in: 2...12, using: &generator), port: port)
            for _ in 0..<5 { kernel.change(&generator) }
            var machine = NetlinkMachine(port: port, need: .defaultRoute)
            var told: [Connectivity.Status] = []
            var isPaused = false
            func perform(_ actions: [NetlinkMachine.Action]) {
                for action in actions {
                    switch action {
                    case .send(let request): kernel.take(request)
                    case .notify(let connectivity): told.append(connectivity.status)
                    case .pause: isPaused = true
                    case .giveUp(let number): Issue.record("seed \(seed): gave up with \(number)")
                    }
                }
            }
            func read() -> Bool {
                switch kernel.read() {
                case .datagram(let bytes): perform(machine.receive(bytes[...]))
                case .overrun: machine.messagesWereLost()
                case .nothing:
                    let actions = machine.wasReadEmpty()
                    perform(actions)
                    return !actions.isEmpty
                }
                return true
            }
            perform(machine.begin())
            for _ in 0..<60 {
                if generator.chance(2, in: 3) { kernel.change(&generator) } else { _ = read() }
            }
            while read() || isPaused {
                if isPaused { machine.pauseIsOver() }
                isPaused = false
            }
            #expect(machine.isSettled, "seed \(seed)")
            #expect(told.last == kernel.truth, "seed \(seed)")
            #expect(machine.picture.connectivity.status == kernel.truth, "seed \(seed)")
        }
    }
}
