// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

extension NetworkRequest {
    /// Returns a shell command that sends the request with `curl`.
    ///
    /// ```swift
    /// func show(_ request: NetworkRequest) { print(request.curlCommand()) }
    /// ```
    ///
    /// With the default redaction, the command hides information, so the command is only for display. With `.none`, the
    /// command sends the same method, URL, headers and body as the request. The command does not follow redirects.
    ///
    /// If the body is a stream, or is in memory and larger than 1 MiB, the command omits the body. A comment in the
    /// first line then tells you to provide the body in a file.
    ///
    /// - Parameter redaction: The information to hide. The default replaces standard secrets and all query values with
    ///   `***`, hides the fragment of the URL, and omits every body in memory that is neither JSON nor a form. If the
    ///   body is a file, the command reads the file.
    public func curlCommand(redaction: LogRedaction = .secrets) -> String {
        CurlCommand(self, redaction).text
    }
}

extension AnyNetworkOperation {
    /// Returns a `curl` command for the operation's most recent request, or `nil` if the operation has not prepared a
    /// request.
    ///
    /// The command contains the headers that the session added, such as cookies. After a redirect, the command sends
    /// the redirected request. For a download without observers, the command sends the request that the operation
    /// passed to the session, without these changes.
    ///
    /// - Parameter redaction: The information to hide. The default replaces standard secrets and all query values with
    ///   `***`, hides the fragment of the URL, and omits every body in memory that is neither JSON nor a form. If the
    ///   body is a file, the command reads the file.
    public func curlCommand(redaction: LogRedaction = .secrets) -> String? {
        sentRequest?.curlCommand(redaction: redaction)
    }
}

/// A request as a shell command.
private struct CurlCommand {
    /// The maximum size of an argument, which operating systems limit.
    private static let mostArgumentBytes = 100_000
    private static let mostBytes = 1 << 20

    private let request: NetworkRequest
    private let redaction: LogRedaction
    /// The source of the body.
    private var body = Body.none

    private enum Body {
        case none
        /// The body is in an argument.
        case text(String)
        /// The body is the output of another command.
        case piped(String)
        case file(String)
        /// The body is missing, and the text describes it.
        case missing(String)
    }

    init(_ request: NetworkRequest, _ redaction: LogRedaction) {
        (self.request, self.redaction) = (request, redaction)
        body = makeBody()
    }

    var text: String {
        var parts = ["curl" + method]
        let url = request.summary(redaction).url
        if url.utf8.contains(where: { "[]{}".utf8.contains($0) }) { parts.append("--globoff") }
        if url.contains("/.") { parts.append("--path-as-is") }
        parts += fields
        switch body {
        case .none: break
        case .text(let text): parts.append("--data-raw \(quoted(text))")
        case .piped: parts.append("--data-binary @-")
        case .file(let path): parts.append("--data-binary \(quoted("@" + path))")
        case .missing: parts.append("--data-binary @BODY")
        }
        parts.append(quoted(url))
        let command = parts.joined(separator: " \\\n  ")
        return switch body {
        case .piped(let source): "\(source) | \(command)"
        case .missing(let note): "# \(note)\n\(command)"
        case .none, .text, .file: command
        }
    }

    private var method: String {
        switch (request.method, request.body.isNone) {
        case ("GET", true), ("POST", false): ""
        case ("HEAD", true): " --head"
        default: " --request \(quoted(request.method))"
        }
    }

    private var fields: [String] {
        var lines = request.headers.map { field in
            let value = redaction.value(of: field)
            // A header without a value ends with a semicolon, because `curl` omits a header that ends with a colon.
            return "--header " + quoted(value.isEmpty ? "\(field.name);" : "\(field.name): \(value)")
        }
        // These options remove the headers that `curl` adds and a session does not.
        if !request.headers.contains("User-Agent") { lines.append("--header 'User-Agent:'") }
        if !request.body.isNone {
            if !request.headers.contains("Content-Type") { lines.append("--header 'Content-Type:'") }
            lines.append(request.expectsContinue ? "--header 'Expect: 100-continue'" : "--header 'Expect:'")
        }
        let isDecoded =
            request.options.decodesContent && !request.headers.contains("Accept-Encoding")
            && !request.headers.contains("Range")
        if isDecoded { lines.append("--compressed") }
        return lines
    }

    private func makeBody() -> Body {
        switch request.body.source {
        case .none: .none
        case .data(let data): data.count > Self.mostBytes ? missing("\(data.count)") : makeBody(of: data)
        case .file(let region): makeBody(of: region)
        case .stream: missing(request.body.length.map { "\($0)" })
        }
    }

    private func missing(_ count: String?) -> Body {
        let count = count.map { "the \($0) bytes" } ?? "the bytes"
        return .missing(
            "Replace BODY with the path of a file with \(count) of the body, which this command does not contain.")
    }

    private func makeBody(of region: FileRegion) -> Body {
        if region.isWhole { return .file(region.url.path) }
        return .piped(
            "tail -c +\(region.offset + 1) \(quoted(region.url.path)) | head -c \(region.length)")
    }

    private func makeBody(of data: Data) -> Body {
        guard redaction.keepsSecrets else { return .text(withoutSecrets(data)) }
        // Foundation's initializer would drop a byte order mark.
        if let text = String(validating: data, as: UTF8.self), !text.utf8.contains(0) {
            // The arguments of a shell builtin have no size limit.
            return text.utf8.count > Self.mostArgumentBytes ? .piped("printf %s \(quoted(text))") : .text(text)
        }
        return .piped("printf '\(Self.octal(data))'")
    }

    private func withoutSecrets(_ data: Data) -> String {
        if data.isEmpty { return "" }
        if let json = redaction.json(of: data, limit: Self.mostArgumentBytes) { return json }
        guard let form = redaction.form(data, type: request.headers["Content-Type"] ?? "") else {
            return "(\(data.count) bytes)"
        }
        let text = form.map(\.shown).joined(separator: "&")
        return text.utf8.count > Self.mostArgumentBytes ? "(\(data.count) bytes)" : text
    }

    /// Returns the bytes as an argument of `printf` that works in every shell.
    private static func octal(_ data: Data) -> String {
        var text = ""
        for byte in data {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: " "):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 8)
                text += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
            }
        }
        return text
    }

    /// Returns the quoted text.
    ///
    /// The text is processed by scalars, because a quotation mark and a combining mark form one character.
    private func quoted(_ text: String) -> String {
        var result = "'"
        for scalar in text.unicodeScalars {
            if scalar == "'" { result += "'\\''" } else { result.unicodeScalars.append(scalar) }
        }
        return result + "'"
    }
}
