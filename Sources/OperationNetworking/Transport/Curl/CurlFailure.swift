// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import CurlDeclarations

    /// What libcurl's numbers mean.
    struct CurlFailure {
        private let transfer: CurlTransfer
        private let code: Int32

        init(_ transfer: CurlTransfer, _ code: Int32) {
            self.transfer = transfer
            self.code = code
        }

        /// The error of an ended transfer; nil if it succeeded.
        var error: NetworkError? {
            guard code != 0 || !transfer.isResponseComplete else { return nil }
            let (kind, message) = meaning
            var error = NetworkError(
                code: kind, phase: transfer.phase, message: message,
                underlying: .init(domain: "libcurl", number: Int(code), text: text))
            error.status = transfer.responseStatus
            return error
        }

        private var text: String {
            let said = transfer.handle.errorText
            return said.isEmpty || tellsProxy(said)
                ? OKCurl.easyErrorText(code).map { String(cString: $0) } ?? "" : said
        }

        /// Whether a text may have the address of the proxy in it, and in that a password.
        private func tellsProxy(_ said: String) -> Bool {
            if ["Received HTTP code", "Proxy CONNECT aborted"].contains(where: { said.hasPrefix($0) }) { return false }
            return code == 5 || said.lowercased().contains("proxy")
        }

        private var meaning: (NetworkError.Code, String) {
            switch code {
            case _ where [35, 55, 56].contains(code) && isAboutOurCertificate:
                (.clientCertificateRejected, "The server refused our certificate, or wants one.")
            case 0 where transfer.hasReceivedHeaders:
                (.connectionLost, "The connection ended before the head of the response was complete. Try again.")
            case 0: (.invalidResponse, "The response has no head: the server does not speak HTTP.")
            case 1, 8: (.invalidResponse, "What the server sent is no valid HTTP. Check the port and the server.")
            case 3: (.invalidURL, "The URL cannot be sent. Check it.")
            case 5: (.cannotFindHost, "The name of the proxy could not be looked up. Check the proxy and the network.")
            case 6: (.cannotFindHost, "The name of the host could not be looked up. Check the URL and the network.")
            case 7: connecting
            case 16, 92: (.connectionLost, "The HTTP/2 connection or stream broke. Try again if that does no harm.")
            case 18 where transfer.phase != .receiving:
                (.connectionLost, "The server closed the connection, or the stream, without an answer.")
            case 18: (.truncatedBody, "The connection ended before the body was complete. Try again.")
            case 23, 61: (.undecodableBody, "The body could not be decompressed.")
            // libcurl has no room for a line that is longer than it ever reads.
            case 27 where !transfer.isResponseComplete && transfer.phase != .connecting:
                (.headerTooLarge, "A line of the response's head is too long.")
            case 27: (.resourcesExhausted, "There was no memory left.")
            case 28: (.timedOut, "No connection was ready within the time limit (timeouts.connect).")
            case 52: (.connectionLost, "The server closed the connection without an answer.")
            case 55: (.connectionLost, "The connection broke while the request was sent.")
            case 56 where isMalformed: (.invalidResponse, "What the server sent is no valid HTTP.")
            case 56 where transfer.phase == .connecting: (.proxyFailed, "The proxy refused to connect, or broke off.")
            case 56: (.connectionLost, "The connection broke while the answer was awaited or received.")
            case 63: (.bodyTooLarge, "The body is larger than can be counted.")
            case 65: (.bodyNotRepeatable, "The connection broke, and the body cannot be sent again.")
            case 97: (.proxyFailed, "The proxy refused or failed. Check the proxy and its credentials.")
            default: securing
            }
        }

        private var isMalformed: Bool {
            let said = text.lowercased()
            return ["chunk", "header", "hexadecimal"].contains { said.contains($0) }
        }

        /// What a server says of the other side's certificate, it says by an alert of TLS.
        private var isAboutOurCertificate: Bool {
            let said = text.lowercased()
            return said.contains("alert") && (said.contains("certificate") || said.contains("unknown ca"))
        }

        private var connecting: (NetworkError.Code, String) {
            switch transfer.handle.long(OKCurlInfoSystemErrorNumber) {
            // ENETDOWN, ENETUNREACH, EHOSTUNREACH.
            case 100, 101, 113: (.notConnected, "The host cannot be reached from here. Check the network.")
            // ENFILE, EMFILE.
            case 23, 24: (.resourcesExhausted, "Too many files and sockets are open. Raise the limit (ulimit -n).")
            default: (.cannotConnect, "The server does not accept connections. Check host, port and server.")
            }
        }

        private var securing: (NetworkError.Code, String) {
            switch code {
            case 51, 60, 83, 91: (.untrustedCertificate, "The server's certificate is not to be trusted.")
            case 77: (.untrustedCertificate, "The certificates to be trusted cannot be read. Check tls.trust.")
            case 90: (.untrustedCertificate, "The server's key is none of the pinned ones.")
            case 58, 98: (.clientCertificateRejected, "Our certificate is missing, cannot be read, or was refused.")
            case 35, 53, 54, 59, 64, 66, 80: (.secureConnectionFailed, "TLS could not be agreed upon with the server.")
            default: (.transferFailed, "The transfer failed.")
            }
        }
    }
#endif
