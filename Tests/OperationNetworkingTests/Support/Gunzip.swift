// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking

    /// Decompresses gzip data.
    enum Gunzip {
        /// Returns `nil` if the data is damaged or incomplete.
        static func data(_ data: Data) -> Data? {
            guard let decoder = ContentDecoder(coding: "gzip") else { return nil }
            var (result, offset) = (Data(), 0)
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let bytes = Array(data)
            while true {
                let outcome = bytes.withUnsafeBytes { input in
                    buffer.withUnsafeMutableBytes { decoder.decode(.init(rebasing: input[offset...]), into: $0) }
                }
                guard case .portion(let used, let made) = outcome else { return nil }
                offset += used
                result += buffer[..<made]
                if used == 0, made == 0 { return decoder.isComplete && offset > 0 ? result : nil }
            }
        }

        static func text(_ data: Data) -> String? { self.data(data).map { String(decoding: $0, as: UTF8.self) } }
    }
#endif
