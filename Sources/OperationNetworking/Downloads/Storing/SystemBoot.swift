// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Since when the system runs: until it goes down, what a program wrote is not lost, even if the program is.
enum SystemBoot {
    /// A text that is another after each start of the system; nil where the system does not tell.
    static let identity: String? = {
        #if canImport(Darwin)
            var bytes = [CChar](repeating: 0, count: 64)
            var count = bytes.count
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
            return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        #else
            let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
            let trimmed = text.map { $0.filter { !$0.isWhitespace } }
            return trimmed?.isEmpty == false ? trimmed : nil
        #endif
    }()
}
