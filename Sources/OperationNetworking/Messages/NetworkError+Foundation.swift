// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension NetworkError {
    /// Creates a network error from a `URLSession` error.
    package init(_ error: URLError) {
        let kind = Self.kinds[error.code.rawValue] ?? (.transferFailed, .receiving, "The transfer failed.")
        self.init(
            code: kind.code, phase: kind.phase, message: kind.message,
            underlying: .init(
                domain: URLError.errorDomain, number: error.code.rawValue, text: error.localizedDescription))
    }

    // The keys are numbers, because Foundation does not define all of the names on all platforms.
    private static let kinds: [Int: (code: Code, phase: Phase, message: String)] = [
        -999: (.cancelled, .receiving, "The request was canceled."),
        -1000: (.invalidURL, .checking, "The URL is not valid. Check it."),
        -1001: (.timedOut, .awaitingResponse, "The server did not respond in time."),
        -1002: (.unsupportedScheme, .checking, "The scheme of the URL is not supported. Use http or https."),
        -1003: (.cannotFindHost, .connecting, "The host name could not be resolved. Check the URL."),
        -1004: (
            .cannotConnect, .connecting,
            "The server does not accept connections. Check the host and the port."
        ),
        -1005: (.connectionLost, .receiving, "The connection broke."),
        -1006: (.cannotFindHost, .connecting, "The host name could not be resolved. Check the network."),
        -1007: (.tooManyRedirects, .receiving, "The server sent too many redirects."),
        -1008: (.transferFailed, .receiving, "The resource is not available."),
        -1009: (.notConnected, .connecting, "There is no network connection."),
        -1010: (.invalidRedirect, .receiving, "A redirect does not lead to a valid URL."),
        -1011: (.invalidResponse, .receiving, "The response is not valid HTTP."),
        -1012: (.transferFailed, .awaitingResponse, "The authentication that the server requested was canceled."),
        -1013: (.transferFailed, .awaitingResponse, "The server requires credentials."),
        -1014: (.truncatedBody, .receiving, "The connection ended before any of the body arrived."),
        -1015: (.undecodableBody, .receiving, "The body could not be decompressed."),
        -1016: (.undecodableBody, .receiving, "The body could not be decompressed."),
        -1017: (.invalidResponse, .receiving, "The response cannot be parsed."),
        -1018: (.notConnected, .connecting, "Data roaming is turned off."),
        -1019: (.notConnected, .connecting, "A phone call is in progress."),
        -1020: (.notConnected, .connecting, "Cellular data is not allowed."),
        -1021: (.bodyNotRepeatable, .sending, "The body must be sent again, but it can be read only once."),
        -1022: (
            .unsupportedScheme, .checking,
            "App Transport Security allows only https. Use https, or change the settings of the app."
        ),
        -1100: (.bodyUnreadable, .checking, "The file does not exist."),
        -1101: (.bodyUnreadable, .checking, "The file is a folder."),
        -1102: (.bodyUnreadable, .checking, "The program does not have permission to read the file."),
        -1103: (.bodyTooLarge, .receiving, "The body is larger than allowed."),
        -1104: (.transferFailed, .checking, "The file is outside the safe area."),
        -1200: (.secureConnectionFailed, .connecting, "The TLS handshake with the server failed."),
        -1201: (.untrustedCertificate, .connecting, "The server's certificate has expired."),
        -1202: (.untrustedCertificate, .connecting, "The server's certificate is not trusted."),
        -1203: (.untrustedCertificate, .connecting, "The root of the server's certificate is unknown."),
        -1204: (.untrustedCertificate, .connecting, "The server's certificate is not valid yet."),
        -1205: (.clientCertificateRejected, .connecting, "The server rejected the client certificate."),
        -1206: (.clientCertificateRejected, .connecting, "The server requires a client certificate."),
        -2000: (
            .transferFailed, .checking,
            "The resource is not in the cache, and the request allows no other source."
        ),
        -3000: (.fileUnwritable, .receiving, "The file could not be created."),
        -3001: (.fileUnwritable, .receiving, "The file could not be opened."),
        -3002: (.fileUnwritable, .receiving, "The file could not be closed."),
        -3003: (.fileUnwritable, .receiving, "The file could not be written. Check the free space on the disk."),
        -3004: (.fileUnwritable, .receiving, "The file could not be removed."),
        -3005: (.fileUnwritable, .receiving, "The file could not be moved."),
        -3006: (.undecodableBody, .receiving, "The download could not be decoded while it arrived."),
        -3007: (.undecodableBody, .receiving, "The download could not be decoded at its end."),
        -995: (.transferFailed, .waiting, "A background session needs the identifier of a shared container."),
        -996: (.transferFailed, .waiting, "The background session is in use by another process."),
        -997: (.connectionLost, .receiving, "The background session lost its connection."),
    ]
}

extension NetworkError: CustomNSError {
    /// The domain of the `NSError` that represents a network error.
    public static var errorDomain: String { "OperationKit.NetworkError" }

    /// The code of the `NSError` that represents this network error.
    ///
    /// Each standard code has a positive number, which is the same in all versions of OperationKit. Custom codes have
    /// the number 0.
    public var errorCode: Int { (Self.numbering.firstIndex(of: code) ?? -1) + 1 }

    /// The user info of the `NSError` that represents this network error.
    ///
    /// The dictionary contains the message and the names of the code and the phase. If the error has a status, a
    /// request, a URL or details of retries, the dictionary also contains these values. The value for
    /// `NSUnderlyingErrorKey` is the ``cause`` or, if there is no cause, the ``underlying`` error.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: message, "code": code.description]
        info["phase"] = phase.description
        if let status { info["status"] = status }
        if let retryAfter { info["retryAfter"] = retryAfter.seconds }
        if let retryEnd { info["retryEnd"] = retryEnd.description }
        if !attempts.isEmpty { info["attempts"] = attempts.count }
        if let request {
            info["request"] = request.description
            if let url = URL(string: request.url) { info[NSURLErrorFailingURLErrorKey] = url }
        }
        if let cause {
            info[NSUnderlyingErrorKey] = cause
        } else if let underlying {
            info[NSUnderlyingErrorKey] = NSError(
                domain: underlying.domain, code: underlying.number,
                userInfo: [NSLocalizedDescriptionKey: underlying.text])
        }
        return info
    }

    /// The codes in the order of their numbers.
    ///
    /// Add new codes only at the end.
    private static let numbering: [Code] = [
        .invalidURL, .missingHost, .unsupportedScheme, .invalidMethod, .invalidHeaderName, .invalidHeaderValue,
        .reservedHeader, .bodyNotAllowed, .bodyLengthMismatch, .invalidLimit, .bodyUnreadable, .bodyChanged,
        .bodyNotRepeatable, .cancelled, .sessionClosed, .sessionUnavailable, .timedOut, .cannotFindHost, .cannotConnect,
        .notConnected, .proxyFailed, .secureConnectionFailed, .untrustedCertificate, .clientCertificateRejected,
        .connectionLost, .resourcesExhausted, .invalidResponse, .truncatedBody, .headerTooLarge, .bodyTooLarge,
        .undecodableBody, .expansionTooLarge, .transferFailed, .tooManyRedirects, .redirectLoop, .invalidRedirect,
        .insecureRedirect, .redirectRefused, .unacceptableStatus, .unacceptableContentType, .emptyResponse,
        .undecodableResult, .responseRefused, .evaluationFailed, .preparationFailed, .fileUnwritable,
        .bodyNotEncodable, .checksumMismatch, .diskFull, .destinationBusy, .destinationExists,
        .unexpectedLength, .compressionUnavailable, .offline, .offlineTooLong, .offlineTooOften, .tooManyOffline,
        .unsupportedBody, .credentialRejected, .refreshFailed, .refreshTimedOut, .tooManyRefreshes, .signedOut,
        .originPaused, .awaitedTwice, .unboundTask, .otherOrigin,
    ]
}

/// The failures that occur because the process or the system has too many files and sockets open.
enum DescriptorShortage {
    /// The number of descriptors that a failed part of a transfer may have closed when its failure is reported.
    private static let margin = 4

    /// The `errno` value with which the system refuses to open a few files now, or 0 if it opens them.
    ///
    /// Some libraries do not report why they could not open a file. A library closes its other descriptors before it
    /// reports the failure, so one free descriptor does not prove that there was one before.
    static var errorNumber: Int32 {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        for _ in 0..<margin {
            let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return isShortage(errno) ? errno : 0 }
            opened.append(descriptor)
        }
        return 0
    }

    /// Returns whether an `errno` value means that too many files are open.
    static func isShortage(_ number: Int32) -> Bool { number == EMFILE || number == ENFILE }

    /// Returns the error for a file that the system did not open, or `nil` if there is another reason.
    static func error(_ number: Int32, opening path: String, phase: NetworkError.Phase) -> NetworkError? {
        guard isShortage(number) else { return nil }
        return NetworkError(
            code: .resourcesExhausted, phase: phase,
            message: "\(path) cannot be opened: too many files and sockets are open. Raise the limit (ulimit -n).",
            underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
    }
}
