// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// A form of several parts, streamed.
    public static func multipart(_ form: MultipartForm) throws(NetworkError) -> RequestBody {
        try checkBoundary(form.boundary)
        for part in form.parts { try check(part) }
        let plan = MultipartPlan(form)
        return RequestBody.stream(
            length: try plan.length(), canBeSentAgain: form.parts.allSatisfy(\.body.canBeSentAgain)
        ) {
            MultipartProducer(plan)
        }.withContentType("multipart/form-data; boundary=\(quoted(form.boundary))")
    }

    /// A dictionary as a form: of several parts if one of its values is binary, else URL-encoded.
    ///
    /// Binary are `Data`, a ``FileRegion``, a ``RequestBody`` and arrays with any of these in them, whose elements become
    /// parts of their own, named as ``FormEncoder/arrays`` says. All others are written as ``FormEncoder`` writes them, and
    /// everything comes in the alphabetical order of the keys.
    public static func fields(
        _ dictionary: [String: Any?], encoder: FormEncoder = FormEncoder()
    ) throws(NetworkError) -> RequestBody {
        guard dictionary.values.contains(where: { isBinary($0) || hasBinaries($0) }) else {
            return try form(dictionary, encoder: encoder)
        }
        var multipart = MultipartForm()
        for (key, value) in dictionary.sorted(by: { $0.key < $1.key }) {
            if let list = value as? [Any], hasBinaries(list) {
                for (index, element) in list.enumerated() {
                    try add(element, as: encoder.arrays.name(key, index), to: &multipart, encoder)
                }
            } else {
                try add(value, as: key, to: &multipart, encoder)
            }
        }
        return try .multipart(multipart)
    }

    private static func isBinary(_ value: Any?) -> Bool {
        value is Data || value is FileRegion || value is RequestBody
    }

    private static func hasBinaries(_ value: Any?) -> Bool { (value as? [Any])?.contains(where: isBinary) ?? false }

    private static func add(
        _ value: Any?, as name: String, to form: inout MultipartForm, _ encoder: FormEncoder
    ) throws(NetworkError) {
        switch value {
        case let data as Data: form.add(name, data, fileName: name)
        case let file as FileRegion: form.add(name, file: file)
        case let body as RequestBody: form.add(.init(name: name, body: body))
        default: for pair in try pairs([name: value], encoder) { form.add(pair.name, pair.value) }
        }
    }

    private static func pairs(
        _ dictionary: [String: Any?], _ encoder: FormEncoder
    ) throws(NetworkError) -> [FormWriter.Pair] {
        do {
            return try encoder.pairs(of: MixedValue(dictionary))
        } catch {
            throw .unencodable("a form", error)
        }
    }

    private static func check(_ part: MultipartForm.Part) throws(NetworkError) {
        if let type = part.contentType {
            guard !type.isEmpty, type.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw refusal(
                    "The content type of a part is empty or has a line break or another control character in it.")
            }
        }
        guard part.body.contentEncoding == nil else {
            throw refusal(
                "A part of a form is compressed, and a form cannot say so. Compress the whole form: "
                    + ".multipart(form).gzipped().")
        }
        guard part.body.length ?? 0 >= 0 else { throw refusal("The length of a part is negative.") }
    }

    /// RFC 2046, section 5.1.1.
    private static func checkBoundary(_ boundary: String) throws(NetworkError) {
        let allowed = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=? ".utf8)
        guard (1...70).contains(boundary.utf8.count), boundary.utf8.last != 0x20,
            boundary.utf8.allSatisfy(allowed.contains)
        else {
            throw refusal(
                "The boundary is none: choose 1 to 70 letters, digits and signs of '()+_,-./:=? that do not end in a space."
            )
        }
    }

    private static func quoted(_ boundary: String) -> String { boundary.isToken ? boundary : "\"\(boundary)\"" }

    private static func refusal(_ message: String) -> NetworkError {
        NetworkError(code: .bodyNotEncodable, phase: .checking, message: message)
    }
}
