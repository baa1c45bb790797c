// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

extension NetworkRequest {
    /// The request as a command for a shell, which `curl` carries out.
    ///
    /// ```swift
    /// func show(_ request: NetworkRequest) { print(request.curlCommand()) }
    /// ```
    ///
    /// Without secrets it is for reading. With `.none` it sends what the request sends: method, URL, fields and body, the
    /// body of a file from that file. It follows no redirect. A body that is made while it is sent, or is larger than a
    /// mebibyte, is not in the command: its first line then says what file is to be put in its place.
    ///
    /// - Parameter redaction: What is left out: the usual secrets, values of queries, and bodies that are neither JSON nor a
    ///   form.
    public func curlCommand(redaction: LogRedaction = .secrets) -> String {
        CurlCommand(self, redaction).text
    }
}

extension AnyNetworkOperation {
    /// The last request that the operation sent, or made ready to be sent, as a command for a shell; nil before the first.
    ///
    /// It has what the session adds, such as cookies, and is that of the last redirect. Of a download that nobody observes it
    /// is the request as the operation handed it to the session.
    public func curlCommand(redaction: LogRedaction = .secrets) -> String? {
        sentRequest?.curlCommand(redaction: redaction)
    }
}

/// A request as a command.
private struct CurlCommand {
    /// So many bytes stand in an argument: systems bound those.
    private static let mostArgumentBytes = 100_000
    private static let mostBytes = 1 << 20

    private let request: NetworkRequest
    private let redaction: LogRedaction
    /// Where the body comes from.
    private var body = Body.none

    private enum Body {
        case none
        /// In an argument.
        case text(String)
        /// From another command.
        case piped(String)
        case file(String)
        /// There is a word on what is to stand there.
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
            // A field without a value is written with a semicolon: with a colon it would be left out.
            return "--header " + quoted(value.isEmpty ? "\(field.name);" : "\(field.name): \(value)")
        }
        // What the program adds by itself, and a session does not.
        if !request.headers.contains("User-Agent") { lines.append("--header 'User-Agent:'") }
        if !request.body.isNone {
            if !request.headers.contains("Content-Type") { lines.append("--header 'Content-Type:'") }
            lines.append(request.options.expectsContinue ? "--header 'Expect: 100-continue'" : "--header 'Expect:'")
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
        return .missing("BODY stands for a file with \(count) of the body, which are not in this command.")
    }

    private func makeBody(of region: FileRegion) -> Body {
        if region.isWhole { return .file(region.url.path) }
        return .piped(
            "tail -c +\(region.offset + 1) \(quoted(region.url.path)) | head -c \(region.length)")
    }

    private func makeBody(of data: Data) -> Body {
        guard redaction.keepsSecrets else { return .text(withoutSecrets(data)) }
        if let text = String(bytes: data, encoding: .utf8), !text.utf8.contains(0) {
            // What is made by a builtin of the shell is not bounded.
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

    /// The bytes for `printf`, of any shell.
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

    /// Not by characters: a quote and a sign that joins it are another one of those, and the same quote to a shell.
    private func quoted(_ text: String) -> String {
        var result = "'"
        for scalar in text.unicodeScalars {
            if scalar == "'" { result += "'\\''" } else { result.unicodeScalars.append(scalar) }
        }
        return result + "'"
    }
}
