// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Testing

struct TopicsTests {
    @Test func `the documentation page of OperationTestKit lists all public types`() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let root = tests.deletingLastPathComponent().deletingLastPathComponent()
        let kit = root.appendingPathComponent("Sources/OperationTestKit")
        let page = kit.appendingPathComponent("OperationTestKit.docc/OperationTestKit.md")
        let topics = try #require(
            try String(contentsOf: page, encoding: .utf8).components(separatedBy: "## Topics").dropFirst().first)
        let files = try #require(FileManager.default.enumerator(at: kit, includingPropertiesForKeys: nil))
        var names: [String] = []
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            // Only at the beginning of a line, which excludes nested types.
            let types = text.matches(of: /(?m)^public (?:final |indirect )?(?:class|struct|enum|actor|protocol) (\w+)/)
            names += types.map { String($0.output.1) }
        }
        #expect(names.count > 30)
        #expect(names.filter { !topics.contains("- ``\($0)``") } == [])
    }
}
