// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Testing

@Suite("Page of faults and attacks", .timeLimit(.minutes(3)))
struct FaultCatalogueTests {
    private static var root: URL {
        (0..<4).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }
    }

    /// The sources of all tests, by file name.
    private func sources() throws -> [String: String] {
        let folder = Self.root.appendingPathComponent("Tests")
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var sources: [String: String] = [:]
        for case let file as URL in files where file.pathExtension == "swift" {
            sources[file.lastPathComponent, default: ""] += try String(contentsOf: file, encoding: .utf8)
        }
        return sources
    }

    @Test func `each test that the page names exists`() throws {
        let page = Self.root.appendingPathComponent("Docs/Design/FaultCatalogue.md")
        let sources = try sources()
        var count = 0
        for line in try String(contentsOf: page, encoding: .utf8).split(separator: "\n") where line.hasPrefix("| ") {
            let cells = line.split(separator: " | ").map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: "| `"))
            }
            guard cells.count >= 3, cells[cells.count - 2].hasSuffix(".swift") else { continue }
            let (file, name) = (cells[cells.count - 2], cells[cells.count - 1])
            #expect(sources[file]?.contains(name) == true, "\(file): \(name)")
            count += 1
        }
        #expect(count > 90)
    }
}
