// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Makes a result of a body, as its type says: for endpoints, and for operations without an evaluator.
enum DecodedBody {
    /// Returns data as it is, text in its character set, and everything else decoded from JSON.
    ///
    /// An optional is nil where there is no body.
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

    /// The same for a type that is only known while the program runs.
    static func read<Model: Decodable, Result>(
        _ type: Model.Type, as result: Result.Type, _ data: Data, _ head: ResponseHead,
        _ makeDecoder: () -> JSONDecoder
    ) throws -> Result? {
        let model: Model = try read(data, head.contentType, makeDecoder)
        return model as? Result
    }
}

extension ResponseHead {
    /// The type of the body as Foundation has it: fields of the same name are joined by commas.
    var contentType: String { headers.values("Content-Type").joined(separator: ", ") }
}

/// The result of a request whose answer has nothing in it that matters.
public struct NoContent: Codable, Sendable, Hashable {
    /// Makes one.
    public init() {}

    /// Reads nothing.
    public init(from decoder: any Decoder) {}

    /// Writes an empty object.
    public func encode(to encoder: any Encoder) throws {
        _ = encoder.container(keyedBy: Key.self)
    }

    private enum Key: CodingKey {}
}
