// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct BodyOutletTests {
    private func read(_ count: Int, _ outlet: inout BodyOutlet) throws -> (portion: BodyPortion, bytes: [UInt8]) {
        var room = [UInt8](repeating: 0, count: count)
        let portion = try room.withUnsafeMutableBytes { try outlet.read(into: $0) { BodyWaker {} } }
        return (portion, room)
    }

    @Test func `a body is opened at the first read, and again after a rewind`() throws {
        var outlet = BodyOutlet(.data(Data([1, 2, 3])))
        #expect(!outlet.isOpen && outlet.isComplete == nil && outlet.count == 0)
        for _ in 0..<2 {
            let first = try read(2, &outlet)
            #expect(first.portion == .bytes(2) && first.bytes == [1, 2])
            #expect(outlet.isOpen && outlet.isComplete == false && outlet.count == 2)
            let second = try read(2, &outlet)
            #expect(second.portion == .bytes(1) && second.bytes[0] == 3 && outlet.isComplete == true)
            let last = try read(2, &outlet)
            #expect(last.portion == .end && outlet.count == 3)
            outlet.rewind()
            #expect(!outlet.isOpen && outlet.count == 0)
        }
    }

    @Test func `a body that cannot be opened is tried again at the next read`() throws {
        struct Missing: Error {}
        let tries = Tally()
        var outlet = BodyOutlet(
            .stream(canBeSentAgain: true) {
                tries.add()
                throw Missing()
            })
        for _ in 0..<2 { #expect(throws: NetworkError.self) { _ = try read(1, &outlet) } }
        #expect(tries.count == 2 && !outlet.isOpen && outlet.count == 0)
    }
}
