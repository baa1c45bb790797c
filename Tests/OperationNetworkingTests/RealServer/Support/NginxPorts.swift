// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// The ports at which an nginx of the tests listens.
    struct NginxPorts: Sendable {
        /// HTTP/1.1 without TLS.
        let plain = LocalPort.free()
        /// HTTP/1.1 over TLS.
        let secure = LocalPort.free()
        /// HTTP/2 over TLS.
        let http2 = LocalPort.free()
        /// HTTP/2 over TLS with one request at a time per connection.
        let narrow = LocalPort.free()
        /// HTTP/2 over TLS with three requests per connection, after which the server sends GOAWAY.
        let brief = LocalPort.free()
        /// HTTP/2 over TLS with 50 requests per connection and a log of the requests.
        let counting = LocalPort.free()
        /// TLS 1.2 only.
        let tls1_2 = LocalPort.free()
        /// TLS 1.3 only.
        let tls1_3 = LocalPort.free()

        var all: [UInt16] { [plain, secure, http2, narrow, brief, counting, tls1_2, tls1_3] }
    }
#endif
