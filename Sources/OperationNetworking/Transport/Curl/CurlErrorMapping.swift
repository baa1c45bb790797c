// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    extension CurlTransfer {
        /// Returns the error of a transfer that failed or ended without the headers of a final response.
        func error(after code: Int32) -> NetworkError {
            let text = text(of: code)
            let meaning = CurlErrorMapping(
                code: code, phase: phase, text: text, hasReceivedHeaders: attempt.headerCount > 0,
                hasFinalHead: attempt.status != nil, isRefused: isRefused,
                systemError: systemError(of: code))
            let (kind, message) = meaning.codeAndMessage
            var error = NetworkError(
                code: kind, phase: phase, message: message,
                underlying: .init(domain: "libcurl", number: Int(code), text: text))
            error.status = attempt.status
            return error
        }

        /// Returns the system's error number for the failure, or 0 if it is not known.
        private func systemError(of code: Int32) -> Int {
            switch code {
            case 7:
                attempt.socketError == 0
                    ? handle.long(OKCurlInfoSystemErrorNumber) : Int(attempt.socketError)
            // libcurl, its resolver and its TLS library do not say why they could not open a socket or a file.
            case 5, 6, 26, 35, 58, 77, 82: Int(DescriptorShortage.errorNumber)
            default: 0
            }
        }

        private func text(of code: Int32) -> String {
            let errorText = handle.errorText
            return errorText.isEmpty || mentionsProxy(errorText, code)
                ? OKCurl.easyErrorText(code).map { String(cString: $0) } ?? "" : errorText
        }

        /// Returns whether a message may contain the address of the proxy, and so a password.
        private func mentionsProxy(_ errorText: String, _ code: Int32) -> Bool {
            if ["Received HTTP code", "Proxy CONNECT aborted"].contains(where: { errorText.hasPrefix($0) }) {
                return false
            }
            return code == 5 || errorText.lowercased().contains("proxy")
        }
    }

    /// The meaning of the result codes of libcurl.
    package struct CurlErrorMapping: Sendable {
        private let code: Int32
        private let phase: NetworkError.Phase
        private let text: String
        private let hasReceivedHeaders: Bool
        private let hasFinalHead: Bool
        private let isRefused: Bool
        private let systemError: Int

        /// Creates the mapping for one result.
        ///
        /// - Parameters:
        ///   - code: The result code of libcurl.
        ///   - phase: The phase in which the transfer ended.
        ///   - text: The message of libcurl.
        ///   - hasReceivedHeaders: Whether a part of the response headers arrived.
        ///   - hasFinalHead: Whether all headers of a final response arrived.
        ///   - isRefused: Whether the server said that it did not process the request.
        ///   - systemError: The system's error number for the failure, or 0 if it is not known.
        package init(
            code: Int32, phase: NetworkError.Phase, text: String = "", hasReceivedHeaders: Bool = false,
            hasFinalHead: Bool = false, isRefused: Bool = false, systemError: Int = 0
        ) {
            (self.code, self.phase, self.text, self.systemError) = (code, phase, text, systemError)
            (self.hasReceivedHeaders, self.hasFinalHead) = (hasReceivedHeaders, hasFinalHead)
            self.isRefused = isRefused
        }

        /// The codes with which libcurl reports that a stream of HTTP/2, or its connection, ended too early.
        package static let endsOfStreams: Set<Int32> = [0, 16, 18, 52, 55, 56, 92]

        /// The code and the message of the error.
        package var codeAndMessage: (NetworkError.Code, String) {
            switch code {
            // ENFILE, EMFILE.
            case _ where [23, 24].contains(systemError):
                (.resourcesExhausted, "Too many files and sockets are open. Raise the limit (ulimit -n).")
            case _ where [35, 55, 56].contains(code) && isAboutOurCertificate:
                (.clientCertificateRejected, "The server rejected the client certificate, or requires one.")
            case _ where isRefused && Self.endsOfStreams.contains(code):
                (
                    .connectionLost,
                    "The server closed the connection and reported that it did not process the request. "
                        + "Send the request again."
                )
            case 0 where hasReceivedHeaders:
                (.connectionLost, "The connection ended before the headers of the response were complete. Try again.")
            case 0:
                (
                    .invalidResponse,
                    "The response has no headers, so the server does not use HTTP. Check the port and the server."
                )
            case 1, 8: (.invalidResponse, "The response is not valid HTTP. Check the port and the server.")
            // libcurl reports this if the first header line begins with a blank.
            case 43 where phase == .awaitingResponse || phase == .receiving:
                (.invalidResponse, "The response is not valid HTTP: a header has no name.")
            case 3: (.invalidURL, "The URL is not valid. Check it.")
            case 5: (.cannotFindHost, "The name of the proxy could not be resolved. Check the proxy and the network.")
            case 6: (.cannotFindHost, "The host name could not be resolved. Check the URL and the network.")
            case 7: connecting
            case 16, 92, 95:
                (
                    .connectionLost,
                    "The connection or its stream broke. Try again if the request can safely be repeated."
                )
            case 18 where phase != .receiving:
                (.connectionLost, "The server closed the connection or the stream without a response.")
            case 18: (.truncatedBody, "The connection ended before the body was complete. Try again.")
            case 23, 61: (.undecodableBody, "The body could not be decompressed.")
            case 26: (.bodyUnreadable, "The body of the request could not be read.")
            // libcurl has no room for such a long line. Older versions report a lack of memory.
            case 27 where isInHead, 100 where isInHead:
                (.headerTooLarge, "A header line of the response is too long.")
            case 27: (.resourcesExhausted, "The process is out of memory.")
            case 28: (.timedOut, "No connection was ready within the time limit (timeouts.connect).")
            case 47: (.tooManyRedirects, "The server sent too many redirects.")
            case 52: (.connectionLost, "The server closed the connection without a response.")
            case 55: (.connectionLost, "The connection broke while the request was sent.")
            case 56 where text.hasPrefix("Too large response headers"):
                (.headerTooLarge, "The headers of the response are larger than libcurl allows.")
            case 56 where isMalformed: (.invalidResponse, "The response is not valid HTTP.")
            case 56 where phase == .connecting: (.proxyFailed, "The proxy refused the connection or closed it.")
            case 56: (.connectionLost, "The connection broke before the response was complete.")
            case 63: (.bodyTooLarge, "The size of the body exceeds the largest possible number.")
            case 65: (.bodyNotRepeatable, "The connection broke, and the body cannot be sent again.")
            // libcurl sends credentials only to proxies.
            case 67, 94, 97:
                (.proxyFailed, "The proxy refused the request or failed. Check the proxy and its credentials.")
            default: securing
            }
        }

        private var isInHead: Bool { !hasFinalHead && phase != .connecting }

        private var isMalformed: Bool {
            let errorText = text.lowercased()
            return ["chunk", "header", "hexadecimal"].contains { errorText.contains($0) }
        }

        /// Whether the text is about our certificate, which a server rejects with a TLS alert.
        private var isAboutOurCertificate: Bool {
            let errorText = text.lowercased()
            return errorText.contains("alert")
                && (errorText.contains("certificate") || errorText.contains("unknown ca"))
        }

        private var connecting: (NetworkError.Code, String) {
            switch systemError {
            // ENETDOWN, ENETUNREACH, EHOSTUNREACH.
            case 100, 101, 113: (.notConnected, "The host cannot be reached from here. Check the network.")
            // ENOMEM, ENOBUFS.
            case 12, 105: (.resourcesExhausted, "The system has no memory left for a socket. Use fewer connections.")
            // EADDRNOTAVAIL.
            case 99:
                (
                    .resourcesExhausted,
                    "The system has no local port or address left for a connection to this host. Use fewer connections."
                )
            default:
                (.cannotConnect, "The server does not accept connections. Check the host, the port and the server.")
            }
        }

        private var securing: (NetworkError.Code, String) {
            switch code {
            case 51, 60, 83, 91: (.untrustedCertificate, "The server's certificate is not trusted.")
            case 77, 82: (.untrustedCertificate, "The trusted certificates cannot be read. Check tls.trust.")
            case 90: (.untrustedCertificate, "The server's key is not one of the pinned keys.")
            case 58, 98:
                (.clientCertificateRejected, "The client certificate is missing, cannot be read, or was rejected.")
            case 35, 53, 54, 59, 64, 66, 80, 101:
                (.secureConnectionFailed, "The TLS handshake with the server failed.")
            default: rare
            }
        }

        /// The meaning of codes with which no transfer of this package is known to end.
        private var rare: (NetworkError.Code, String) {
            switch code {
            case 2, 99: (.resourcesExhausted, "No memory or socket is available for the transfer.")
            case 4, 41, 48:
                (.sessionUnavailable, "The libcurl of this system does not support a feature that the request needs.")
            case 45, 96:
                (.cannotConnect, "No connection could be established. Check the host, the port and the network.")
            case 89: (.resourcesExhausted, "No connection is available for the transfer. Try again.")
            case 100: (.transferFailed, "A value in the transfer is larger than libcurl allows.")
            default: (.transferFailed, "The transfer failed.")
            }
        }
    }

#endif
