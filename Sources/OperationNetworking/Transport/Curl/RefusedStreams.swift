// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// A record of the requests that an HTTP/2 server said it did not process.
    ///
    /// A GOAWAY names the last stream that the server may have processed. All streams above it are safe to repeat,
    /// whatever the method (RFC 9113, 8.7). Nothing else that libcurl says or does counts as proof, because it repeats
    /// requests of broken connections in the same way as refused requests.
    package struct RefusedStreams {
        private struct Entry {
            /// The socket of the connection; nil if it is not known.
            var connection: Int32?
            var stream: UInt32?
            var isRefused = false
        }

        /// The entries of transfers, by their numbers.
        private var entries: [Int: Entry] = [:]
        /// The last streams of connections that got a GOAWAY, by their sockets.
        private var lastStreams: [Int32: UInt32] = [:]

        package init() {}

        /// Notes that a transfer is about to send its request over a connection, or still has it there.
        package mutating func began(_ transfer: Int, on connection: Int32?) {
            entries[transfer] = Entry(connection: connection)
        }

        /// Notes a message of libcurl about a transfer.
        ///
        /// - Parameter isThere: Returns whether a transfer still has the connection with which it began. Messages about
        ///   a transfer that looks for another connection may be about any connection.
        package mutating func note(_ remark: CurlRemark, of transfer: Int, isThere: (Int) -> Bool) {
            guard let connection = entries[transfer]?.connection, isThere(transfer) else { return }
            switch remark {
            case .stream(let number):
                entries[transfer]?.stream = number
                // nghttp2 sends no new request over a connection after a GOAWAY.
                entries[transfer]?.isRefused = lastStreams[connection] != nil
            case .goAway(let last):
                let last = min(last, lastStreams[connection] ?? .max)
                lastStreams[connection] = last
                for (number, entry) in entries where entry.connection == connection {
                    guard let stream = entry.stream, stream > last, isThere(number) else { continue }
                    entries[number]?.isRefused = true
                }
            }
        }

        /// Whether the server said that it did not process the transfer's request.
        package func isRefused(_ transfer: Int) -> Bool {
            !entries.isEmpty && entries[transfer]?.isRefused == true
        }

        /// Notes that the transfer is over, or begins again.
        package mutating func ended(_ transfer: Int) {
            if !entries.isEmpty { entries[transfer] = nil }
        }

        /// Notes that a connection was closed.
        ///
        /// The number of its socket may soon be that of another connection.
        package mutating func closed(_ connection: Int32) {
            lastStreams[connection] = nil
            for (number, entry) in entries where entry.connection == connection { entries[number]?.connection = nil }
        }
    }
#endif
