// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// Removes the secrets from exchanges: the values whose names a ``LogRedaction`` hides, and texts that have the form of
/// a secret.
///
/// It keeps everything else as it is, because a recording must still work as a response.
struct RecordingRedactor: Sendable {
    static let stars = "***"
    /// Fields whose value is one address, to its end.
    private static let addressFields = ["Location", "Content-Location", "Referer"]

    let redaction: LogRedaction

    /// A URL without secrets.
    func url(_ url: URL) -> String {
        redaction.keepsSecrets ? url.absoluteString : addresses.redacted(url.absoluteString)
    }

    /// A message as it is written down, and compared.
    ///
    /// Its fields and its body have no secrets, and the usual boundary where the body has parts. The body is nil if it
    /// cannot be looked into.
    ///
    /// - Parameters:
    ///   - headers: The header fields.
    ///   - body: The body; nil if it is not there.
    ///   - isDecoded: Whether it was decompressed, whatever the fields say.
    func message(
        _ headers: HeaderFields, _ body: Data?, isDecoded: Bool = false
    ) -> (headers: HeaderFields, body: Data?) {
        var shown = fields(headers)
        let encoding = headers["Content-Encoding"]?.lowercased() ?? "identity"
        guard isDecoded || encoding == "identity" else {
            return (shown, redaction.keepsSecrets || body?.isEmpty == true ? body : nil)
        }
        guard let type = headers["Content-Type"], let range = RecordedMultipart.boundary(in: type) else {
            return (shown, body.flatMap { self.body($0, type: headers["Content-Type"]) })
        }
        let rewritten = body.flatMap { multipart($0, String(type[range]), boundary: RecordedMultipart.usualBoundary) }
        // Head and body go together, also where the body is none in parts after all.
        if let body, rewritten == nil, !body.isEmpty { return (shown, redaction.keepsSecrets ? body : nil) }
        shown["Content-Type"] = type.replacingCharacters(in: range, with: RecordedMultipart.usualBoundary)
        return (shown, rewritten ?? body)
    }

    /// What a body that cannot be looked into is compared by: all of it but for the boundary between its parts.
    func checksum(_ headers: HeaderFields, _ body: Data) -> String {
        PlaybackKey.body(RecordingRedactor(redaction: .none).message(headers, body).body ?? body)
    }

    /// Header fields without the secret values, and without those in addresses among the others.
    func fields(_ fields: HeaderFields) -> HeaderFields {
        guard !redaction.keepsSecrets else { return fields }
        return HeaderFields(fields.map { HeaderFields.Field($0.name, value(of: $0)) })
    }

    private func value(of field: HeaderFields.Field) -> String {
        if field.isNamed("Set-Cookie") { return RecordedCookies.redacted(field.value) }
        if redaction.hides(field.name) { return Self.stars }
        let isAddress = Self.addressFields.contains { field.isNamed($0) }
        if isAddress { return addresses.redacted(field.value) }
        return redaction.withoutSecrets(inHeader: addresses.redacted(in: field.value))
    }

    /// A body without the secrets; nil if it is of a kind that has them in known places, and cannot be looked into.
    private func body(_ data: Data, type: String?) -> Data? {
        guard !redaction.keepsSecrets, !data.isEmpty else { return data }
        let kind = (type ?? "").prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        if kind == "application/x-www-form-urlencoded" {
            return String(data: data, encoding: .utf8).map { Data(addresses.pairs($0[...]).utf8) }
        }
        if let type, kind.hasPrefix("multipart/") {
            // Within a part: its head stays as it is, so the boundary does, too.
            let boundary = RecordedMultipart.boundary(in: type).map { String(type[$0]) }
            return boundary.flatMap { multipart(data, $0, boundary: $0) }
        }
        // Much of what is JSON does not say so.
        let isCalledJSON = kind.contains("json")
        let begins = data.first { ![9, 10, 13, 32, 0xEF, 0xBB, 0xBF].contains($0) }
        if isCalledJSON || begins == 0x7B || begins == 0x5B {
            if let clean = json(data) { return clean }
            if isCalledJSON { return nil }
        }
        return text(data, isText: kind.hasPrefix("text/") || kind.hasSuffix("xml"))
    }

    private func json(_ data: Data) -> Data? {
        SecretJSON.redacted(data, redaction, keepsKinds: true) { text in
            // JSON within JSON has names, too.
            if LogRedaction.isJSON(text), let clean = json(Data(text.utf8)) {
                return String(decoding: clean, as: UTF8.self)
            }
            return shown(text)
        }
    }

    private func shown(_ text: String) -> String { redaction.withoutNamedSecrets(addresses.redacted(in: text)) }

    /// Returns a text without the secrets that it reveals, other data as it is, and nil for a text in two-byte
    /// characters.
    private func text(_ data: Data, isText: Bool) -> Data? {
        guard !data.contains(0) else { return isText ? nil : data }
        if let text = String(validating: data, as: UTF8.self) {
            let clean = shown(text)
            return clean == text ? data : Data(clean.utf8)
        }
        guard isText else { return data }
        // The words are in ASCII, whatever the other bytes mean.
        let text = String(String.UnicodeScalarView(data.map { Unicode.Scalar($0) }))
        return Data(shown(text).unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
    }

    private func multipart(_ data: Data, _ old: String, boundary: String) -> Data? {
        let head = { (text: String) in redaction.withoutNamedSecrets(text) }
        return RecordedMultipart(data, boundary: old).rewritten(boundary: boundary, head: head) { name, type, content in
            if let name, redaction.hides(name) { return Data(Self.stars.utf8) }
            return body(content, type: type)
        }
    }

    private var addresses: RecordedAddresses { RecordedAddresses(redaction: redaction) }
}
