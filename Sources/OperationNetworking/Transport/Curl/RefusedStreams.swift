// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    /// The requests that an HTTP/2 server said that it did not process: a small book of streams and connections.
    ///
    /// A GOAWAY names the last stream that the server may have processed. All streams above it are safe to repeat, whatever
    /// the method (RFC 9113, 8.7). Nothing is concluded from anything else that libcurl says or does: it repeats requests of
    /// connections that broke in the same way as requests that were refused.
    package struct RefusedStreams {
        private struct Entry {
            /// Nil if it is not known.
            var connection: Int32?
            var stream: UInt32?
            var isRefused = false
        }

        /// By the numbers of transfers.
        private var entries: [Int: Entry] = [:]
        /// By the sockets of connections.
        private var lastStreams: [Int32: UInt32] = [:]

        package init() {}

        /// A transfer is about to send its request over a connection, or is known to have it there.
        package mutating func began(_ transfer: Int, on connection: Int32?) {
            entries[transfer] = Entry(connection: connection)
        }

        /// libcurl made a remark about a transfer.
        ///
        /// - Parameter isThere: Whether a transfer still has the connection with which it began. The remarks about one that
        ///   looks for another connection may be about any connection.
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

        /// The transfer is over, or begins again.
        package mutating func ended(_ transfer: Int) {
            if !entries.isEmpty { entries[transfer] = nil }
        }

        /// A connection was closed: its socket's number may soon be that of another one.
        package mutating func closed(_ connection: Int32) {
            lastStreams[connection] = nil
            for (number, entry) in entries where entry.connection == connection { entries[number]?.connection = nil }
        }
    }
#endif
