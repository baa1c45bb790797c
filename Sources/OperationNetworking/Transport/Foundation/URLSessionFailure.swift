// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the errors of Foundation's tasks mean for a request that was checked.
struct URLSessionFailure {
    private let failure: any Error
    private let phase: NetworkError.Phase

    init(_ error: any Error, phase: NetworkError.Phase) {
        failure = error
        self.phase = phase
    }

    var error: NetworkError {
        let known = NetworkError(failure, phase: phase)
        guard let failure = failure as? URLError, let (code, message) = meaning(failure, known) else { return known }
        let isEarly = known.phase == .connecting || code == .secureConnectionFailed || code == .untrustedCertificate
        return NetworkError(
            code: code, phase: isEarly ? .connecting : phase, message: message, underlying: known.underlying)
    }

    /// Nil if the number says it all.
    ///
    /// On Linux most have the number -1, and only a text of libcurl's tells them apart.
    private func meaning(_ failure: URLError, _ known: NetworkError) -> (NetworkError.Code, String)? {
        let text = failure.localizedDescription.lowercased()
        func says(_ words: String...) -> Bool { words.contains { text.contains($0) } }
        switch failure.code.rawValue {
        case -1 where says("certificate", "self-signed", "self signed"):
            return (.untrustedCertificate, "The server's certificate is not to be trusted.")
        case -1 where says("ssl", "tls"):
            return (.secureConnectionFailed, "TLS could not be agreed upon with the server.")
        case -1 where says("transfer closed", "outstanding read data"):
            return (.truncatedBody, "The connection ended before the body was complete. Try again.")
        case -1
        where says("content encoding", "content-encoding", "decompress", "inflate", "unencoding", "transfer-encoding"):
            return (.undecodableBody, "The body could not be decompressed.")
        // libcurl has no room for a line that is longer than it ever reads.
        case -1 where says("too large", "header size") || says("out of memory") && phase != .receiving:
            return (.headerTooLarge, "The head of the response is too large.")
        case -1 where says("chunk", "hexadecimal", "weird", "malformed", "header", "http/", "content-length"):
            return (.invalidResponse, "What the server sent is no valid HTTP. Check the port and the server.")
        case -1 where says("unreachable", "no route"):
            return (.notConnected, "The host cannot be reached from here. Check the network.")
        case -1 where says("recv failure", "send failure", "broken pipe", "reset", "stream", "connection died"):
            return (.connectionLost, "The connection broke.")
        // The scheme was looked at before: it is the answer that is of no known kind.
        case -1002: return (.invalidResponse, "What the server sent is no valid HTTP. Check the port and the server.")
        case -1011 where says("empty reply"), -1005:
            return (.connectionLost, "The connection broke before the response was complete.")
        default: return nil
        }
    }
}
