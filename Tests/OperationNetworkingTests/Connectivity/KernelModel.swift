// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit

/// A model of a kernel's messages about the network, including missing and lost messages.
struct KernelModel {
    private struct Answer {
        let question: NetlinkMachine.Question
        let sequence: UInt32
        var parts: Int
    }

    static let links: [Int32] = [2, 3, 4]
    /// The maximum number of waiting messages.
    private let room: Int
    private let port: UInt32
    private var running: Set<Int32> = []
    private var addresses: [Int32: Set<UInt8>] = [:]
    /// The interfaces with a default route.
    private var routes: Set<Int32> = []
    private var waiting: [[UInt8]] = []
    private var isOverrun = false
    /// Whether messages are dropped until everything was read.
    ///
    /// The overrun is reported once.
    private var isCongested = false
    private var answer: Answer?

    init(room: Int, port: UInt32) {
        self.room = room
        self.port = port
    }

    /// The true state.
    var truth: Connectivity.Status {
        Self.links.contains { running.contains($0) && addresses[$0]?.isEmpty == false && routes.contains($0) }
            ? .satisfied : .unsatisfied
    }

    /// Changes something, and reports it only if a kernel does.
    mutating func change(_ generator: inout SeededGenerator) {
        let link = Self.links.randomElement(using: &generator) ?? 2
        // The request of another process, whose sequence number may equal one of ours.
        let writer = NetlinkWriter(
            sequence: .random(in: 0...6, using: &generator), port: generator.chance(1, in: 2) ? 0 : port + 1)
        switch Int.random(in: 0..<6, using: &generator) {
        case 0, 1:
            if running.remove(link) != nil {
                // The kernel reports no message for the removed routes.
                routes.remove(link)
                notify(writer.link(link, "eth\(link)", flags: 0x1002))
            } else {
                running.insert(link)
                notify(writer.link(link, "eth\(link)", flags: 0x1043))
            }
        case 2: add(UInt8.random(in: 1...2, using: &generator), to: link, writer)
        case 3:
            guard let last = addresses[link]?.randomElement(using: &generator) else { return }
            addresses[link]?.remove(last)
            if addresses[link]?.isEmpty == true { routes.remove(link) }
            notify(writer.address(link, [192, 0, UInt8(link), last], isGone: true))
        case 4:
            guard running.contains(link), addresses[link]?.isEmpty == false else { return }
            routes.insert(link)
            notify(writer.route(link: link))
        default:
            if routes.remove(link) != nil { notify(writer.route(link: link, isGone: true)) }
        }
    }

    private mutating func add(_ number: UInt8, to link: Int32, _ writer: NetlinkWriter) {
        addresses[link, default: []].insert(number)
        notify(writer.address(link, [192, 0, UInt8(link), number]))
    }

    private mutating func notify(_ message: [UInt8]) {
        if !isCongested, waiting.count < room { return waiting.append(message) }
        if !isCongested { isOverrun = true }
        isCongested = true
    }

    /// Handles a request.
    mutating func take(_ request: [UInt8]) {
        let question = request.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 4, as: UInt16.self) }
        let sequence = request.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 8, as: UInt32.self) }
        guard let question = NetlinkMachine.Question(rawValue: question) else { return }
        guard answer == nil else {
            return waiting.append(NetlinkWriter(sequence: sequence, port: port).refused(16))
        }
        answer = Answer(question: question, sequence: sequence, parts: 0)
        goOn()
    }

    /// Writes the next part of the response from the current state.
    ///
    /// A response may be delayed, but is never lost.
    private mutating func goOn() {
        guard var present = answer, waiting.count <= room / 2 else { return }
        let writer = NetlinkWriter(sequence: present.sequence, port: port)
        if present.parts == Self.links.count {
            answer = nil
            return waiting.append(writer.done())
        }
        let link = Self.links[present.parts]
        present.parts += 1
        answer = present
        switch present.question {
        case .links: waiting.append(writer.link(link, "eth\(link)", flags: running.contains(link) ? 0x1043 : 0x1002))
        case .addresses:
            let messages = (addresses[link] ?? []).map { writer.address(link, [192, 0, UInt8(link), $0]) }
            if !messages.isEmpty { waiting.append(messages.flatMap { $0 }) }
        case .routes: if routes.contains(link) { waiting.append(writer.route(link: link)) }
        }
    }

    enum Reading {
        case datagram([UInt8])
        case overrun
        case nothing
    }

    mutating func read() -> Reading {
        if isOverrun {
            isOverrun = false
            return .overrun
        }
        goOn()
        while waiting.isEmpty, answer != nil { goOn() }
        if waiting.isEmpty {
            isCongested = false
            return .nothing
        }
        return .datagram(waiting.removeFirst())
    }
}
