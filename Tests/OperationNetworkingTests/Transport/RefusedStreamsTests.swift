// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct RefusedStreamsTests {
        private enum Event {
            /// A transfer starts over a connection.
            case begin(Int, Int32?)
            /// A transfer receives a stream.
            case stream(Int, UInt32)
            /// A transfer reads a GOAWAY with this last stream.
            case away(Int, UInt32)
            /// libcurl removes the transfer from its connection.
            case leave(Int)
            case end(Int)
            case close(Int32)
        }

        /// Returns the transfers that are refused after all events.
        private func refused(_ events: [Event]) -> Set<Int> {
            var book = RefusedStreams()
            var gone: Set<Int> = []
            for event in events {
                switch event {
                case .begin(let transfer, let connection):
                    gone.remove(transfer)
                    book.began(transfer, on: connection)
                case .stream(let transfer, let stream):
                    book.record(.stream(stream), of: transfer) { !gone.contains($0) }
                case .away(let transfer, let last):
                    book.record(.goAway(lastStream: last), of: transfer) { !gone.contains($0) }
                case .leave(let transfer): gone.insert(transfer)
                case .end(let transfer): book.ended(transfer)
                case .close(let connection): book.closed(connection)
                }
            }
            return Set((0..<10).filter(book.isRefused))
        }

        /// Transfers 1, 2 and 3 use connection 7, and transfer 4 uses connection 8.
        private let start: [Event] = [
            .begin(1, 7), .stream(1, 1), .begin(2, 7), .stream(2, 3), .begin(3, 7), .stream(3, 5),
            .begin(4, 8), .stream(4, 9),
        ]

        @Test func `streams above the last one in a GOAWAY are refused, whichever transfer reads it`() {
            #expect(refused(start) == [])
            for reader in 1...3 {
                #expect(refused(start + [.away(reader, 0)]) == [1, 2, 3])
                #expect(refused(start + [.away(reader, 1)]) == [2, 3])
                #expect(refused(start + [.away(reader, 3)]) == [3])
                #expect(refused(start + [.away(reader, 5)]) == [])
            }
            #expect(refused(start + [.away(4, 0)]) == [4])
            #expect(refused(start + [.begin(5, 7), .away(5, 1)]) == [2, 3])
        }

        @Test func `a second GOAWAY can refuse more streams, but never fewer`() {
            #expect(refused(start + [.away(1, .max >> 1), .away(1, 3)]) == [3])
            #expect(refused(start + [.away(1, 1), .away(1, 5)]) == [2, 3])
        }

        @Test func `a stream that starts after a GOAWAY is refused`() {
            let later: [Event] = [.begin(5, 7), .stream(5, 7)]
            #expect(refused(start + [.away(1, .max >> 1)] + later) == [5])
            #expect(refused(start + [.away(1, 5), .close(7)] + later) == [])
        }

        @Test func `a transfer that left its connection does not affect it and is not affected`() {
            #expect(refused(start + [.leave(3), .away(3, 0)]) == [])
            #expect(refused(start + [.leave(3), .away(1, 0)]) == [1, 2])
            // This transfer was refused before.
            #expect(refused(start + [.away(1, 3), .leave(3), .close(7)]) == [3])
            #expect(refused(start + [.away(1, 3), .leave(3), .begin(3, 8)]) == [])
            #expect(refused(start + [.away(1, 3), .leave(3), .begin(3, 8), .stream(3, 11)]) == [])
        }

        @Test func `no stream is refused if its connection is unknown`() {
            #expect(refused([.begin(1, nil), .stream(1, 5), .away(1, 0)]) == [])
            #expect(refused(start + [.begin(5, nil), .stream(5, 7), .away(1, 0)]) == [1, 2, 3])
            #expect(refused(start + [.begin(5, nil), .stream(5, 7), .away(5, 0)]) == [])
            #expect(refused([.away(1, 0), .stream(1, 5)]) == [])
        }

        @Test func `a reused socket does not refer to the closed connection`() {
            #expect(refused(start + [.close(7), .begin(5, 7), .stream(5, 1), .away(5, 0)]) == [5])
            #expect(refused(start + [.close(7), .away(1, 0)]) == [])
        }

        @Test func `an ended transfer is no longer refused`() {
            #expect(refused(start + [.away(1, 1), .end(2)]) == [3])
            #expect(refused(start + [.end(2), .away(1, 0)]) == [1, 3])
            #expect(refused(start + [.end(1), .away(1, 0)]) == [])
        }
    }
#endif
