// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An event of a Foundation task.
package enum URLSessionEvent: Sendable {
    package typealias Handler = @Sendable (URLSessionEvent) -> Void

    case response(URLResponse)
    case bytes(Data)
    case sent(Int64)
    /// Foundation asks whether to follow a redirect, and the closure declines.
    case redirect(refuse: @Sendable () -> Void)
    case refusedChallenge
    case measured(TransferMetrics)
    /// The response that follows is the rest of a response that an earlier task had received in part.
    case continued
    /// The whole body is in a file.
    case file(SpooledFile)
    /// The request is to be sent again from its beginning.
    case startOver
    case end((any Error)?)
}

/// The delegate of Foundation's tasks, which forwards events, and declines redirects and requests for credentials.
///
/// On Apple platforms, each task has its own delegate. On Linux, each private session has one.
final class URLSessionReporter: NSObject, URLSessionDataDelegate, Sendable {
    private let listeners = Locked<[Int: URLSessionEvent.Handler]>([:])

    func listen(to task: URLSessionTask, _ report: @escaping URLSessionEvent.Handler) {
        listeners.withLock { $0[task.taskIdentifier] = report }
    }

    private func report(_ task: URLSessionTask, _ event: URLSessionEvent) {
        listeners.withLock { $0[task.taskIdentifier] }?(event)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        report(dataTask, .response(response))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        report(dataTask, .bytes(data))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        report(task, .sent(totalBytesSent))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // On Linux, an answer after a cancellation crashes the program, so it is given on the queue that cancels tasks.
        #if canImport(FoundationNetworking)
            report(task, .redirect { completionHandler(nil) })
        #else
            completionHandler(nil)
        #endif
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
            // Any other answer results in a task that never ends.
            report(task, .refusedChallenge)
            completionHandler(.cancelAuthenticationChallenge, nil)
        #else
            let isAboutUser =
                [
                    NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest,
                    NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
                    NSURLAuthenticationMethodDefault,
                ].contains(challenge.protectionSpace.authenticationMethod)
            // The layer above supplies credentials. The delegate of the session, or the system, evaluates trust.
            guard !isAboutUser else { return completionHandler(.rejectProtectionSpace, nil) }
            askDelegate(of: session, task, challenge, completionHandler)
        #endif
    }

    #if canImport(Darwin)
        /// Passes a challenge to the delegate of the session, first for the session and then for the task.
        ///
        /// The system asks only the delegate of a task, and would otherwise ignore the pinned keys and the certificates
        /// of the session's own delegate.
        private func askDelegate(
            of session: URLSession, _ task: URLSessionTask, _ challenge: URLAuthenticationChallenge,
            _ answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let delegate = session.delegate
            if delegate?.urlSession?(session, didReceive: challenge, completionHandler: answer) != nil { return }
            let ofTasks = delegate as? any URLSessionTaskDelegate
            if ofTasks?.urlSession?(session, task: task, didReceive: challenge, completionHandler: answer) != nil {
                return
            }
            answer(.performDefaultHandling, nil)
        }
    #endif

    #if canImport(Darwin)
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
        ) {
            report(task, .response(response))
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
        ) {
            report(task, .measured(TransferMetrics(metrics)))
        }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let report = listeners.withLock { $0.removeValue(forKey: task.taskIdentifier) }
        report?(.end(error))
    }
}

extension NetworkError {
    /// Returns the meaning of an error of Foundation for a request that was already checked.
    package static func ofSession(_ failure: any Error, phase: Phase) -> NetworkError {
        let known = NetworkError(failure, phase: phase)
        guard let failure = failure as? URLError, let (code, message) = meaning(of: failure, phase) else {
            return known
        }
        // Without a connection, nothing was sent.
        let isEarly = [.cannotConnect, .notConnected, .secureConnectionFailed, .untrustedCertificate].contains(code)
        return NetworkError(
            code: code, phase: isEarly ? .connecting : phase, message: message, underlying: known.underlying)
    }

    /// Returns a more precise meaning, or `nil` if the error code says enough.
    ///
    /// On Linux, most errors have the code -1, and only the message of libcurl distinguishes them.
    private static func meaning(of failure: URLError, _ phase: Phase) -> (Code, String)? {
        let text = failure.localizedDescription.lowercased()
        func says(_ words: String...) -> Bool { words.contains { text.contains($0) } }
        // The message contains the name of the host, in which any of the words below can occur.
        let isConnecting = ["failed to connect", "couldn't connect", "could not connect"].contains {
            text.hasPrefix($0)
        }
        #if canImport(FoundationNetworking)
            // If an address of the host refused the connection, Foundation also reports each later failure with -1004.
            // Another address may have accepted the connection, and the server may have processed the request.
            let number = failure.code == .cannotConnectToHost ? -1 : failure.code.rawValue
        #else
            let number = failure.code.rawValue
        #endif
        switch number {
        case -1 where isConnecting && says("unreachable", "no route"):
            return (.notConnected, "The host cannot be reached from here. Check the network.")
        case -1 where isConnecting:
            return (.cannotConnect, "The server does not accept connections. Check the host and the port.")
        // The following two failures can also occur after the handshake, when the server may have the request.
        case -1 where says("alert") && says("certificate", "unknown ca"):
            return (.clientCertificateRejected, "The server rejected the client certificate, or requires one.")
        case -1 where says("ssl_read", "ssl_write", "gnutls recv", "gnutls send"):
            return (.connectionLost, "The connection broke.")
        case -1 where says("certificate", "self-signed", "self signed"):
            return (.untrustedCertificate, "The server's certificate is not trusted.")
        case -1 where says("ssl", "tls"):
            return (.secureConnectionFailed, "The TLS handshake with the server failed.")
        case -1 where says("transfer closed", "outstanding read data"):
            return (.truncatedBody, "The connection ended before the body was complete. Try again.")
        case -1
        where says("content encoding", "content-encoding", "decompress", "inflate", "unencoding", "transfer-encoding"):
            return (.undecodableBody, "The body could not be decompressed.")
        // libcurl has no room for such a long line.
        case -1 where says("too large", "header size") || says("out of memory") && phase != .receiving:
            return (.headerTooLarge, "The headers of the response are too large.")
        case -1 where says("chunk", "hexadecimal", "weird", "malformed", "header", "http/", "content-length"):
            return (.invalidResponse, "The response is not valid HTTP. Check the port and the server.")
        case -1 where says("recv failure", "send failure", "broken pipe", "reset", "stream", "connection died"):
            return (.connectionLost, "The connection broke.")
        // The scheme was checked before, so the response is of an unknown kind.
        case -1002: return (.invalidResponse, "The response is not valid HTTP. Check the port and the server.")
        case -1 where says("empty reply"), -1011 where says("empty reply"), -1005:
            return (.connectionLost, "The connection broke before the response was complete.")
        case -1 where says("timed out", "timeout was reached"):
            return (.timedOut, "The server did not respond in time.")
        case -1: return (.transferFailed, "The transfer failed.")
        default: return nil
        }
    }
}

#if canImport(Darwin)
    extension TransferMetrics {
        /// Creates metrics from Foundation's metrics for the last request of a task.
        package init(_ metrics: URLSessionTaskMetrics) {
            self.init()
            guard let last = metrics.transactionMetrics.last else { return }
            let start = metrics.taskInterval.start
            func moment(_ date: Date?) -> Duration? { date.map { .seconds($0.timeIntervalSince(start)) } }
            isConnectionReused = last.isReusedConnection
            if !isConnectionReused {
                nameResolved = moment(last.domainLookupEndDate)
                connected = moment(last.connectEndDate)
                secured = moment(last.secureConnectionEndDate)
            }
            requestBegan = moment(last.requestStartDate)
            version =
                switch last.networkProtocolName {
                case "http/1.0": .http1_0
                case "http/1.1": .http1_1
                case "h2": .http2
                case "h3": .http3
                default: nil
                }
            if let address = last.remoteAddress {
                let port = last.remotePort.map { ":\($0)" } ?? ""
                remoteAddress = address.contains(":") ? "[\(address)]\(port)" : "\(address)\(port)"
            }
            bodyBytesSent = last.countOfRequestBodyBytesSent
            bodyBytesReceived = last.countOfResponseBodyBytesReceived
            headerBytesReceived = last.countOfResponseHeaderBytesReceived
        }
    }
#endif

extension ResponseHead {
    /// Creates a head from a response of Foundation, or returns `nil` if the response is not valid.
    ///
    /// Foundation joins headers with the same name, loses their order, and does not report the HTTP version and the
    /// reason phrase.
    init?(_ response: HTTPURLResponse, to request: NetworkRequest) {
        guard (100...999).contains(response.statusCode) else { return nil }
        var fields = HeaderFields()
        let pairs = response.allHeaderFields.compactMap { name, value in
            (name as? String).map { (name: $0, value: "\(value)") }
        }
        for (name, value) in pairs.sorted(by: { $0.name < $1.name }) {
            guard !name.utf8.contains(where: \.isControl) else { return nil }
            let value = value.withoutControls.trimmedBlanks
            let values = name.isSameHeaderName(as: "Set-Cookie") ? value.joinedCookies : [value]
            for value in values { fields.add(name, value) }
        }
        // Foundation decompresses every coding that it knows, even if the request did not ask for it.
        let codings = fields.values("Content-Encoding").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks.lowercased() }
        let isDecoded = codings.contains { !$0.isEmpty && $0 != "identity" }
        self.init(
            url: request.url, status: response.statusCode, headers: fields,
            isDecoded: isDecoded && response.statusCode >= 200)
    }
}

extension ResponseHead {
    /// Returns an error if a body has fewer bytes than the headers announce.
    package func shortfall(of count: Int64, for request: NetworkRequest) -> NetworkError? {
        guard request.method != "HEAD", status != 204, status != 304, let expected = expectedLength, count < expected
        else { return nil }
        return NetworkError(
            code: .truncatedBody, phase: .receiving,
            message: "The connection ended before the body was complete. Try again.")
    }
    /// Returns the head that a response with the whole file would have.
    ///
    /// This applies to a partial response (206), and to a response that says that nothing is missing (416).
    func asWhole(length: Int64?) -> ResponseHead {
        guard status == 206 || status == 416 else { return self }
        var fields = headers
        fields.remove("Content-Range")
        fields["Content-Length"] = length.map { "\($0)" }
        return ResponseHead(
            url: url, status: 200, headers: fields, version: version, reason: reason, isDecoded: isDecoded)
    }
}
