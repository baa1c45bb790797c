// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Testing

/// The privacy manifests that the App Store requires.
@Suite(.timeLimit(.minutes(1)))
struct PrivacyManifestTests {
    /// The calls for which Apple requires a reason, as far as a program without a user interface can make them.
    private static let calls: [(category: String, pattern: String)] = [
        ("FileTimestamp", #"\b(fstat|stat|fstatat|lstat|getattrlist|fgetattrlist)\("#),
        ("FileTimestamp", #"\b(modificationDate|creationDate|contentModificationDateKey|creationDateKey)\b"#),
        ("DiskSpace", #"\b(statfs|fstatfs|statvfs|fstatvfs)\("#),
        ("DiskSpace", #"\b(volumeAvailableCapacity\w*|volumeTotalCapacity\w*|systemFreeSize|systemSize)\b"#),
        ("SystemBootTime", #"\b(systemUptime|mach_absolute_time)\b"#),
        ("UserDefaults", #"\bUserDefaults\b"#),
    ]

    private struct Manifest: Decodable {
        struct Entry: Decodable {
            let NSPrivacyAccessedAPIType: String
            let NSPrivacyAccessedAPITypeReasons: [String]
        }

        let NSPrivacyTracking: Bool
        let NSPrivacyAccessedAPITypes: [Entry]
    }

    @Test(arguments: ["OperationCore", "OperationNetworking", "OperationBackgroundSessions"])
    func `the privacy manifest gives a reason for each category of calls in the library`(library: String) throws {
        var root = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { root.deleteLastPathComponent() }
        let folder = root.appendingPathComponent("Sources/\(library)")
        let data = try Data(contentsOf: folder.appendingPathComponent("PrivacyInfo.xcprivacy"))
        let manifest = try PropertyListDecoder().decode(Manifest.self, from: data)
        #expect(!manifest.NSPrivacyTracking)
        #expect(manifest.NSPrivacyAccessedAPITypes.allSatisfy { !$0.NSPrivacyAccessedAPITypeReasons.isEmpty })
        var used: Set<String> = []
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            for call in Self.calls where text.range(of: call.pattern, options: .regularExpression) != nil {
                used.insert("NSPrivacyAccessedAPICategory\(call.category)")
            }
        }
        #expect(Set(manifest.NSPrivacyAccessedAPITypes.map(\.NSPrivacyAccessedAPIType)) == used)
    }
}
