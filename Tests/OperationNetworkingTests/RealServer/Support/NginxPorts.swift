// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// Where an nginx of the tests listens.
    struct NginxPorts: Sendable {
        /// HTTP/1.1 without TLS.
        let plain = LocalPort.free()
        /// HTTP/1.1 over TLS.
        let secure = LocalPort.free()
        /// HTTP/2 over TLS.
        let http2 = LocalPort.free()
        /// HTTP/2 over TLS, and one request at a time over a connection.
        let narrow = LocalPort.free()
        /// HTTP/2 over TLS, and three requests over a connection: then it says that it takes no more (GOAWAY).
        let brief = LocalPort.free()
        /// HTTP/2 over TLS, 50 requests over a connection, and a log of them.
        let counting = LocalPort.free()
        /// TLS 1.2 and nothing else.
        let tls1_2 = LocalPort.free()
        /// TLS 1.3 and nothing else.
        let tls1_3 = LocalPort.free()

        var all: [UInt16] { [plain, secure, http2, narrow, brief, counting, tls1_2, tls1_3] }
    }
#endif
