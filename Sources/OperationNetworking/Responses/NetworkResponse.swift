// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A complete response, which consists of a body, a status and headers.
///
/// An evaluator or a validation rule with one parameter receives a value of this type, so your code does not need
/// `HTTPURLResponse`, which on Linux belongs to `FoundationNetworking`:
///
/// ```swift
/// func etag(at url: URL) -> NetworkDataOperation<String> {
///     NetworkDataOperation(url: url) { response in
///         response.headers["ETag"] ?? "none, \(response.body.count) bytes"
///     }
/// }
/// ```
public struct NetworkResponse<Body> {
    /// The body of the response, such as `Data` or the `URL` of a file.
    public let body: Body
    /// The status and the headers of the response.
    public let head: ResponseHead

    /// Creates a response from a body, a status and headers, for testing an evaluator.
    ///
    /// - Parameters:
    ///   - body: The body of the response, such as `Data` or the URL of a file.
    ///   - head: The status and the headers of the response.
    public init(body: Body, head: ResponseHead) {
        self.body = body
        self.head = head
    }

    /// The status code of the response, such as 200.
    public var status: Int { head.status }

    /// The headers of the response.
    public var headers: HeaderFields { head.headers }
}

extension NetworkResponse: Sendable where Body: Sendable {}

/// An object that converts a ``ResponseHead`` into an `HTTPURLResponse`.
package protocol ResponseMaker: AnyObject, Sendable {
    /// Returns the response, or `nil` if Foundation cannot represent it.
    func response(of head: ResponseHead) -> HTTPURLResponse?
}

extension ResponseMaker {
    /// Returns the response for callers that require one.
    func needResponse(of head: ResponseHead) throws(NetworkError) -> HTTPURLResponse {
        guard let response = response(of: head) else {
            throw NetworkError(
                code: .invalidResponse, phase: .evaluating,
                message: "Foundation cannot represent the response as an HTTPURLResponse. Use an evaluator or a rule "
                    + "that receives a NetworkResponse, or override evaluate(result:head:).")
        }
        return response
    }
}

/// A response whose transfer is complete.
package struct ReceivedResponse: Sendable {
    package let request: NetworkRequest
    package let head: ResponseHead
    package let collector: any AnyResponseCollector
    let maker: any ResponseMaker

    /// The response in Foundation's form, created on first access because most rules do not need it.
    var response: HTTPURLResponse? { maker.response(of: head) }

    /// Returns the response for callers that require one.
    func needResponse() throws(NetworkError) -> HTTPURLResponse { try maker.needResponse(of: head) }
}

/// The text of a body, decoded with the character set of its content type.
enum ResponseText {
    private static let encodings: [String: String.Encoding] = [
        "utf-8": .utf8, "utf8": .utf8, "us-ascii": .ascii, "ascii": .ascii, "iso-8859-1": .isoLatin1,
        "latin1": .isoLatin1, "iso-8859-2": .isoLatin2, "windows-1252": .windowsCP1252, "cp1252": .windowsCP1252,
        "windows-1250": .windowsCP1250, "windows-1251": .windowsCP1251, "utf-16": .utf16,
        "utf-16le": .utf16LittleEndian, "utf-16be": .utf16BigEndian, "utf-32": .utf32,
    ]

    /// Returns the text, decoded as UTF-8 if no character set is named.
    ///
    /// A UTF-8 byte order mark is left out.
    static func text(_ data: Data, _ contentType: String?) throws(NetworkError) -> String {
        let name = contentType.flatMap(charset)
        guard let encoding = name.map({ encodings[$0] }) ?? .utf8 else {
            throw refusal("The text is in the character set \(name?.prefix(40) ?? ""), which is not supported.")
        }
        let bytes = encoding == .utf8 && data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data
        guard let text = String(bytes: bytes, encoding: encoding) else {
            throw refusal("The body is not valid text in the character set \(name ?? "utf-8").")
        }
        return text
    }

    private static func charset(_ contentType: String) -> String? {
        for parameter in contentType.split(separator: ";").dropFirst() {
            let parts = parameter.split(separator: "=", maxSplits: 1).map { String($0).trimmedBlanks }
            guard parts.count == 2, parts[0].lowercased() == "charset" else { continue }
            return parts[1].trimmingCharacters(in: ["\""]).lowercased()
        }
        return nil
    }

    private static func refusal(_ message: String) -> NetworkError {
        NetworkError(
            code: .undecodableResult, phase: .evaluating,
            message: "\(message) Use Data as the result, and decode the text yourself.")
    }
}

extension HTTPURLResponse {
    var contentType: String? { value(forHTTPHeaderField: "Content-Type") }
}

/// Decodes a body according to the result type, for endpoints and for operations without an evaluator.
enum DecodedBody {
    /// Returns data without changes, text in its character set, and every other type decoded from JSON.
    ///
    /// An optional is `nil` if there is no body.
    static func read<Result: Decodable>(
        _ data: Data, _ contentType: @autoclosure () -> String?, _ makeDecoder: () -> JSONDecoder
    ) throws -> Result {
        if data.isEmpty, let optional = Result.self as? any ExpressibleByNilLiteral.Type,
            let nothing = optional.init(nilLiteral: ()) as? Result
        {
            return nothing
        }
        if let data = data as? Result { return data }
        if Result.self == String.self || Result.self == String?.self,
            let text = try ResponseText.text(data, contentType()) as? Result
        {
            return text
        }
        if let nothing = NoContent() as? Result { return nothing }
        guard !data.isEmpty else {
            throw NetworkError(
                code: .emptyResponse, phase: .evaluating,
                message: "The server sent no body. Use NoContent or an optional as the result, or set emptyResult.")
        }
        return try makeDecoder().decode(Result.self, from: data)
    }

    /// Returns the same for a type that is only known at run time.
    static func read<Model: Decodable, Result>(
        _ type: Model.Type, as result: Result.Type, _ data: Data, _ head: ResponseHead,
        _ makeDecoder: () -> JSONDecoder
    ) throws -> Result? {
        let model: Model = try read(data, head.contentType, makeDecoder)
        return model as? Result
    }
}

extension ResponseHead {
    /// The content type of the body as Foundation returns it, with several headers of that name joined by commas.
    var contentType: String { headers.values("Content-Type").joined(separator: ", ") }
}

/// A result type for requests whose responses have no relevant content.
public struct NoContent: Codable, Sendable, Hashable {
    /// Creates a value that represents a response without relevant content.
    public init() {}

    /// Creates a value without reading data from the decoder.
    public init(from decoder: any Decoder) {}

    /// Encodes an empty object into the encoder.
    public func encode(to encoder: any Encoder) throws {
        _ = encoder.container(keyedBy: Key.self)
    }

    private enum Key: CodingKey {}
}
