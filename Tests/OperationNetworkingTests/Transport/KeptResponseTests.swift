// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

/// Tests how a background session handles the file that the system provides.
@Suite(.timeLimit(.minutes(3)))
struct KeptResponseTests {
    @Test func `the system's file is moved, and removed when the object is released`() throws {
        let source = try TemporaryFile(Data("Hello".utf8))
        var kept: SpooledFile? = try SpooledFile.taking(source.url).get()
        let url = try #require(kept?.url)
        #expect(try Data(contentsOf: url) == Data("Hello".utf8))
        #expect(!FileManager.default.fileExists(atPath: source.url.path))
        kept = nil
        #expect(!FileManager.default.fileExists(atPath: url.path))
    }

    @Test func `a file that cannot be moved is an error instead of an empty success`() throws {
        let source = try TemporaryFile(Data("Hello".utf8))
        let nowhere = source.url.deletingLastPathComponent().appendingPathComponent("none-\(UUID().uuidString)")
        for (location, folder) in [(source.url, nowhere), (nowhere, source.url.deletingLastPathComponent())] {
            let error = #expect(throws: NetworkError.self) { try SpooledFile.taking(location, into: folder).get() }
            #expect(error?.code == .fileUnwritable && error?.phase == .saving)
            #expect(error?.underlying?.domain == NSCocoaErrorDomain)
        }
        #expect(FileManager.default.fileExists(atPath: source.url.path))
    }

    @Test func `a body shorter than its Content-Length is an error, except for responses without a body`() throws {
        let url = try #require(URL(string: "http://example.com/"))
        func shortfall(_ method: String, _ status: Int, _ fields: HeaderFields, isDecoded: Bool = false) throws -> Bool
        {
            let head = ResponseHead(url: url, status: status, headers: fields, isDecoded: isDecoded)
            return head.shortfall(of: 4, for: try NetworkRequest(method, url: url))?.code == .truncatedBody
        }
        #expect(try shortfall("GET", 200, ["Content-Length": "5"]))
        #expect(try !shortfall("GET", 200, ["Content-Length": "4"]))
        #expect(try !shortfall("GET", 200, [:]))
        #expect(try !shortfall("GET", 200, ["Content-Length": "5"], isDecoded: true))
        #expect(try !shortfall("HEAD", 200, ["Content-Length": "5"]))
        #expect(try !shortfall("GET", 304, ["Content-Length": "5"]))
    }
}
