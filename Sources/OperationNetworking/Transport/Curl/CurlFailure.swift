// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    /// The error of a transfer, derived from the result of libcurl.
    struct CurlFailure {
        private let transfer: CurlTransfer
        private let code: Int32

        init(_ transfer: CurlTransfer, _ code: Int32) {
            self.transfer = transfer
            self.code = code
        }

        /// The error of an ended transfer, or `nil` if it succeeded.
        var error: NetworkError? {
            guard code != 0 || !transfer.isResponseComplete else { return nil }
            let text = text
            let meaning = CurlErrorMapping(
                code: code, phase: transfer.phase, text: text, hasReceivedHeaders: transfer.hasReceivedHeaders,
                isResponseComplete: transfer.isResponseComplete, isRefused: transfer.isRefused,
                systemError: systemError)
            let (kind, message) = meaning.told
            var error = NetworkError(
                code: kind, phase: transfer.phase, message: message,
                underlying: .init(domain: "libcurl", number: Int(code), text: text))
            error.status = transfer.responseStatus
            return error
        }

        /// The system's error number for the failure, or 0 if it is not known.
        private var systemError: Int {
            switch code {
            case 7:
                transfer.socketError == 0
                    ? transfer.handle.long(OKCurlInfoSystemErrorNumber) : Int(transfer.socketError)
            // libcurl, its resolver and its TLS library do not say why they could not open a socket or a file.
            case 5, 6, 26, 35, 58, 77, 82: Int(DescriptorShortage.errorNumber)
            default: 0
            }
        }

        private var text: String {
            let said = transfer.handle.errorText
            return said.isEmpty || tellsProxy(said)
                ? OKCurl.easyErrorText(code).map { String(cString: $0) } ?? "" : said
        }

        /// Returns whether a text may contain the address of the proxy, and so a password.
        private func tellsProxy(_ said: String) -> Bool {
            if ["Received HTTP code", "Proxy CONNECT aborted"].contains(where: { said.hasPrefix($0) }) { return false }
            return code == 5 || said.lowercased().contains("proxy")
        }
    }

    /// The meaning of the result codes of libcurl.
    package struct CurlErrorMapping: Sendable {
        private let code: Int32
        private let phase: NetworkError.Phase
        private let text: String
        private let hasReceivedHeaders: Bool
        private let isResponseComplete: Bool
        private let isRefused: Bool
        private let systemError: Int

        /// Creates the mapping for one result.
        ///
        /// - Parameters:
        ///   - code: The result code of libcurl.
        ///   - phase: The phase in which the transfer ended.
        ///   - text: The message of libcurl.
        ///   - hasReceivedHeaders: Whether a part of the response headers arrived.
        ///   - isResponseComplete: Whether all response headers arrived.
        ///   - isRefused: Whether the server said that it did not process the request.
        ///   - systemError: The system's error number for the failure, or 0 if it is not known.
        package init(
            code: Int32, phase: NetworkError.Phase, text: String = "", hasReceivedHeaders: Bool = false,
            isResponseComplete: Bool = false, isRefused: Bool = false, systemError: Int = 0
        ) {
            (self.code, self.phase, self.text, self.systemError) = (code, phase, text, systemError)
            (self.hasReceivedHeaders, self.isResponseComplete) = (hasReceivedHeaders, isResponseComplete)
            self.isRefused = isRefused
        }

        /// The codes with which libcurl reports that a stream of HTTP/2, or its connection, ended too early.
        package static let endsOfStreams: Set<Int32> = [0, 16, 18, 52, 55, 56, 92]

        /// The code and the message of the error.
        package var told: (NetworkError.Code, String) {
            switch code {
            // ENFILE, EMFILE.
            case _ where [23, 24].contains(systemError):
                (.resourcesExhausted, "Too many files and sockets are open. Raise the limit (ulimit -n).")
            case _ where [35, 55, 56].contains(code) && isAboutOurCertificate:
                (.clientCertificateRejected, "The server refused our certificate, or wants one.")
            case _ where isRefused && Self.endsOfStreams.contains(code):
                (
                    .connectionLost,
                    "The server closed the connection and said that it did not process the request. Send the request again."
                )
            case 0 where hasReceivedHeaders:
                (.connectionLost, "The connection ended before the head of the response was complete. Try again.")
            case 0: (.invalidResponse, "The response has no head: the server does not speak HTTP.")
            case 1, 8: (.invalidResponse, "What the server sent is no valid HTTP. Check the port and the server.")
            // libcurl reports this if the first header line begins with a blank.
            case 43 where phase == .awaitingResponse || phase == .receiving:
                (.invalidResponse, "What the server sent is no valid HTTP: a header field has no name.")
            case 3: (.invalidURL, "The URL cannot be sent. Check it.")
            case 5: (.cannotFindHost, "The name of the proxy could not be looked up. Check the proxy and the network.")
            case 6: (.cannotFindHost, "The name of the host could not be looked up. Check the URL and the network.")
            case 7: connecting
            case 16, 92, 95: (.connectionLost, "The connection, or its stream, broke. Try again if that does no harm.")
            case 18 where phase != .receiving:
                (.connectionLost, "The server closed the connection, or the stream, without an answer.")
            case 18: (.truncatedBody, "The connection ended before the body was complete. Try again.")
            case 23, 61: (.undecodableBody, "The body could not be decompressed.")
            case 26: (.bodyUnreadable, "The body of the request could not be read.")
            // libcurl has no room for such a long line. Older versions report a lack of memory.
            case 27 where isInHead, 100 where isInHead:
                (.headerTooLarge, "A line of the response's head is too long.")
            case 27: (.resourcesExhausted, "There was no memory left.")
            case 28: (.timedOut, "No connection was ready within the time limit (timeouts.connect).")
            case 47: (.tooManyRedirects, "The server redirected too many times.")
            case 52: (.connectionLost, "The server closed the connection without an answer.")
            case 55: (.connectionLost, "The connection broke while the request was sent.")
            case 56 where isMalformed: (.invalidResponse, "What the server sent is no valid HTTP.")
            case 56 where phase == .connecting: (.proxyFailed, "The proxy refused to connect, or broke off.")
            case 56: (.connectionLost, "The connection broke while the answer was awaited or received.")
            case 63: (.bodyTooLarge, "The body is larger than can be counted.")
            case 65: (.bodyNotRepeatable, "The connection broke, and the body cannot be sent again.")
            // libcurl sends credentials only to proxies.
            case 67, 94, 97: (.proxyFailed, "The proxy refused or failed. Check the proxy and its credentials.")
            default: securing
            }
        }

        private var isInHead: Bool { !isResponseComplete && phase != .connecting }

        private var isMalformed: Bool {
            let said = text.lowercased()
            return ["chunk", "header", "hexadecimal"].contains { said.contains($0) }
        }

        /// Whether the text is about our certificate, which a server rejects with a TLS alert.
        private var isAboutOurCertificate: Bool {
            let said = text.lowercased()
            return said.contains("alert") && (said.contains("certificate") || said.contains("unknown ca"))
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
                    "This system has no port left for a connection to there, or no address. Use fewer connections."
                )
            default: (.cannotConnect, "The server does not accept connections. Check host, port and server.")
            }
        }

        private var securing: (NetworkError.Code, String) {
            switch code {
            case 51, 60, 83, 91: (.untrustedCertificate, "The server's certificate is not to be trusted.")
            case 77, 82: (.untrustedCertificate, "The certificates to be trusted cannot be read. Check tls.trust.")
            case 90: (.untrustedCertificate, "The server's key is none of the pinned ones.")
            case 58, 98: (.clientCertificateRejected, "Our certificate is missing, cannot be read, or was refused.")
            case 35, 53, 54, 59, 64, 66, 80, 101:
                (.secureConnectionFailed, "TLS could not be agreed upon with the server.")
            default: rare
            }
        }

        /// The meaning of codes with which no transfer of this package is known to end.
        private var rare: (NetworkError.Code, String) {
            switch code {
            case 2, 99: (.resourcesExhausted, "The system had no memory, or no sockets, for the transfer.")
            case 4, 41, 48: (.sessionUnavailable, "The libcurl of this system lacks what the request needs.")
            case 45, 96: (.cannotConnect, "No connection could be made. Check host, port and network.")
            case 89: (.resourcesExhausted, "No connection is free for the transfer. Try again.")
            case 100: (.transferFailed, "Something in the transfer is larger than libcurl takes.")
            default: (.transferFailed, "The transfer failed.")
            }
        }
    }

    /// The metrics that libcurl measured.
    enum CurlMetrics {
        static func collect(_ transfer: CurlTransfer, _ task: CurlTask, now: Int64) -> TransferMetrics {
            let handle = transfer.handle
            var metrics = TransferMetrics()
            // libcurl counts from the time at which it got the request.
            let begun = transfer.soughtAt - task.confined.resumedAt
            func moment(_ info: Int) -> Duration? {
                let microseconds = handle.size(info)
                return microseconds > 0 ? .nanoseconds(begun + microseconds * 1000) : nil
            }
            metrics.slotGranted = .nanoseconds(transfer.beganAt - task.confined.resumedAt)
            metrics.requestBegan = moment(OKCurlInfoRequestTime)
            metrics.firstByte = moment(OKCurlInfoFirstByteTime)
            metrics.ended = .nanoseconds(now - task.confined.resumedAt)
            metrics.paused = .nanoseconds(transfer.deadlines.paused)
            metrics.isConnectionReused = handle.long(OKCurlInfoNewConnections) == 0 && metrics.requestBegan != nil
            if !metrics.isConnectionReused {
                metrics.nameResolved = moment(OKCurlInfoNameTime)
                metrics.connected = moment(OKCurlInfoConnectTime)
                metrics.secured = moment(OKCurlInfoSecureTime)
            }
            switch handle.long(OKCurlInfoHTTPVersion) {
            case 1: metrics.version = .http1_0
            case 2: metrics.version = .http1_1
            case 3: metrics.version = .http2
            default: break
            }
            if let address = handle.string(OKCurlInfoRemoteAddress), !address.isEmpty {
                let port = handle.long(OKCurlInfoRemotePort)
                metrics.remoteAddress = address.utf8.contains(0x3A) ? "[\(address)]:\(port)" : "\(address):\(port)"
            }
            metrics.bodyBytesSent = handle.size(OKCurlInfoBytesSent)
            metrics.bodyBytesReceived = handle.size(OKCurlInfoBytesReceived)
            metrics.headerBytesReceived = Int64(transfer.headerCount)
            return metrics
        }
    }
#endif
