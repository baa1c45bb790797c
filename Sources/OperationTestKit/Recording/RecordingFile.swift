// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// The file format of a recording.
struct RecordingFile: Codable {
    static let format = "OperationKit session recording"
    static let version = 1

    /// The part of the file that is decoded first.
    struct Version: Codable {
        let format: String
        let version: Int
    }

    struct Redaction: Codable {
        let secrets: Bool
        let names: [String]
    }

    /// An error in the content of a file, without the name of the file.
    struct Flaw: Error {
        let detail: String
    }

    struct Body: Codable {
        var text: String?
        var base64: String?
        var count: Int?
        var sha256: String?
        var gap: String?

        init?(_ body: RecordedBody) {
            gap = body.gap.map { "\($0)" }
            guard let data = body.data else {
                (count, sha256) = (body.count, body.checksum)
                return
            }
            if data.isEmpty, gap == nil { return nil }
            if let text = Self.text(data) { self.text = text } else { base64 = data.base64EncodedString() }
        }

        /// Returns the bytes as readable text, or nil if they are not.
        private static func text(_ data: Data) -> String? {
            // Foundation drops a byte order mark.
            guard !data.starts(with: [0xEF, 0xBB, 0xBF]), let text = String(data: data, encoding: .utf8) else {
                return nil
            }
            let isReadable = text.unicodeScalars.allSatisfy { $0.value >= 32 || [9, 10, 13].contains($0.value) }
            return isReadable ? text : nil
        }

        func recorded() throws -> RecordedBody {
            guard let data = try text.map({ Data($0.utf8) }) ?? decoded() else {
                guard sha256 != nil || gap != nil else { return .none }
                let reason = gap.map { RecordedBody.Gap($0) } ?? .tooLong
                return RecordedBody(leftOut: count ?? 0, checksum: sha256, because: reason)
            }
            return gap == "\(RecordedBody.Gap.brokenOff)" ? RecordedBody(brokenOff: data) : RecordedBody(data)
        }

        private func decoded() throws -> Data? {
            guard let base64 else { return nil }
            guard let data = Data(base64Encoded: base64) else { throw Flaw(detail: "a body is not valid base64") }
            return data
        }
    }

    struct Request: Codable {
        let method: String
        let url: String
        let headers: [String]?
        let body: Body?
    }

    struct Response: Codable {
        let status: Int
        /// The URL of the response, if it differs from the URL of the request.
        let url: String?
        let version: String?
        let headers: [String]?
        let body: Body?
        let trailers: [String]?
        /// Whether the session had decompressed the body.
        let isDecoded: Bool?
    }

    struct Failure: Codable {
        let code: String
        let phase: String
        let message: String
        /// Whether the server certainly did not process the request, if this does not follow from the phase.
        let isUnsent: Bool?
        let status: Int?
        let underlying: Underlying?

        struct Underlying: Codable {
            let domain: String
            let number: Int
            let text: String
        }

        init(_ error: NetworkError) {
            (code, phase, message) = ("\(error.code)", "\(error.phase)", error.message)
            let usual = NetworkError(code: error.code, phase: error.phase, message: error.message).isUnsent
            isUnsent = error.isUnsent == usual ? nil : error.isUnsent
            status = error.status
            underlying = error.underlying.map { Underlying(domain: $0.domain, number: $0.number, text: $0.text) }
        }

        var error: NetworkError {
            var error = NetworkError(
                code: .init(code), phase: .init(phase), message: message,
                underlying: underlying.map { .init(domain: $0.domain, number: $0.number, text: $0.text) })
            if let isUnsent { error.isUnsent = isUnsent }
            error.status = status
            return error
        }
    }

    struct Exchange: Codable {
        let request: Request
        let response: Response?
        let failure: Failure?
        let isCancelled: Bool?
    }

    let format: String
    let version: Int
    let redaction: Redaction
    let bodyLimit: Int?
    let exchanges: [Exchange]

    init(_ recording: SessionRecording) {
        (format, version) = (Self.format, Self.version)
        redaction = Redaction(
            secrets: !recording.redaction.keepsSecrets, names: recording.redaction.names.sorted())
        bodyLimit = recording.bodyLimit
        exchanges = recording.exchanges.map(Exchange.init)
    }

    func recording() throws -> SessionRecording {
        let kept: LogRedaction = redaction.secrets ? .secrets(andAll: redaction.names) : .none
        return SessionRecording(try exchanges.map { try $0.recorded() }, redaction: kept, bodyLimit: bodyLimit)
    }
}

extension RecordingFile.Exchange {
    init(_ exchange: RecordedExchange) {
        request = RecordingFile.Request(
            method: exchange.method, url: exchange.url, headers: exchange.requestHeaders.lines,
            body: RecordingFile.Body(exchange.requestBody))
        response = exchange.response.map { head in
            let url = head.url.absoluteString
            return RecordingFile.Response(
                status: head.status, url: url == exchange.url ? nil : url,
                version: head.version == .http1_1 ? nil : "\(head.version)", headers: head.headers.lines,
                body: RecordingFile.Body(exchange.responseBody), trailers: exchange.trailers.lines,
                isDecoded: head.isDecoded ? true : nil)
        }
        var failure: RecordingFile.Failure?
        if case .failed(let error) = exchange.end { failure = RecordingFile.Failure(error) }
        self.failure = failure
        isCancelled = exchange.end == .cancelled ? true : nil
    }

    func recorded() throws -> RecordedExchange {
        var head: ResponseHead?
        if let response {
            guard let url = URL(string: response.url ?? request.url), (200...999).contains(response.status) else {
                throw RecordingFile.Flaw(
                    detail: "the response to \(request.method) \(request.url) has no valid URL or status")
            }
            head = ResponseHead(
                url: url, status: response.status, headers: HeaderFields(lines: response.headers ?? []),
                version: HTTPVersion(text: response.version) ?? .http1_1, isDecoded: response.isDecoded ?? false)
        }
        var end = isCancelled == true ? RecordedExchange.End.cancelled : .complete
        if let failure { end = .failed(failure.error) }
        return RecordedExchange(
            request.method, url: request.url, requestHeaders: HeaderFields(lines: request.headers ?? []),
            requestBody: try request.body?.recorded() ?? .none, response: head,
            responseBody: try response?.body?.recorded() ?? .none,
            trailers: HeaderFields(lines: response?.trailers ?? []), end: end)
    }
}

extension HeaderFields {
    /// The headers as lines, or nil if there are none.
    fileprivate var lines: [String]? { isEmpty ? nil : map { "\($0.name): \($0.value)" } }

    fileprivate init(lines: [String]) {
        self.init(
            lines.map { line in
                let colon = line.firstIndex(of: ":") ?? line.endIndex
                let value = line[colon...].dropFirst().drop { $0 == " " }
                return Field(String(line[..<colon]), String(value))
            })
    }
}

extension HTTPVersion {
    fileprivate init?(text: String?) {
        guard let numbers = text?.split(separator: "/").last?.split(separator: ".").map({ Int($0) }),
            let major = numbers.first, let major
        else { return nil }
        self.init(major, numbers.count > 1 ? numbers[1] ?? 0 : 0)
    }
}
