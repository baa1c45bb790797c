// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension MultipartForm {
    /// One name and what belongs to it.
    public struct Part: Sendable {
        /// The name of the field.
        public let name: String
        /// The name of the file, for the server to know one by.
        public let fileName: String?
        /// What the bytes are; servers take a part without it for text.
        public let contentType: String?
        /// The bytes.
        public let body: RequestBody

        /// Makes a part.
        ///
        /// - Parameters:
        ///   - name: The name of the field.
        ///   - fileName: The name of the file, if it is to be one.
        ///   - contentType: What the bytes are. If nil, the body's own word counts, then the ending of the file name.
        ///   - body: The bytes.
        public init(name: String, fileName: String? = nil, contentType: String? = nil, body: RequestBody) {
            self.name = name
            self.fileName = fileName
            self.contentType = contentType ?? body.contentType ?? fileName.map { MediaType.ofFile(named: $0) }
            self.body = body
        }

        /// The lines before the bytes, without the boundary.
        var head: [UInt8] {
            var text = "Content-Disposition: form-data; name=\"\(Self.escaped(Self.withPairedBreaks(name)))\""
            if let fileName { text += "; filename=\"\(Self.escaped(fileName))\"" }
            text += "\r\n"
            if let contentType { text += "Content-Type: \(contentType)\r\n" }
            return Array((text + "\r\n").utf8)
        }

        private static func escaped(_ text: String) -> String {
            var bytes: [UInt8] = []
            for byte in text.utf8 {
                switch byte {
                case 0x22: bytes += "%22".utf8
                case 0x0D: bytes += "%0D".utf8
                case 0x0A: bytes += "%0A".utf8
                default: bytes.append(byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// Each line break as CR and LF, as the web has them in names (but not in file names).
        private static func withPairedBreaks(_ text: String) -> String {
            var bytes: [UInt8] = []
            var isAfterReturn = false
            for byte in text.utf8 {
                if isAfterReturn != (byte == 0x0A) { bytes.append(isAfterReturn ? 0x0A : 0x0D) }
                // What was missing stands there now: after a return alone the feed, before a feed alone the return.
                bytes.append(byte)
                isAfterReturn = byte == 0x0D
            }
            if isAfterReturn { bytes.append(0x0A) }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}
