// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Images", .timeLimit(.minutes(3)))
struct ImageDataTests {
    private static let samples: [(bytes: [UInt8], format: ImageFormat)] = [
        ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0], .png),
        ([0xFF, 0xD8, 0xFF, 0xE0], .jpeg),
        (Array("GIF89a....".utf8), .gif),
        (Array("RIFF\u{1}\u{2}\u{3}\u{4}WEBPVP8 ".utf8), .webP),
        ([0, 0, 0, 24] + Array("ftypheic....".utf8), .heic),
        ([0, 0, 0, 24] + Array("ftypavif....".utf8), .avif),
        ([0x49, 0x49, 0x2A, 0, 8], .tiff),
        (Array("BM".utf8) + [70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0], .bmp),
        ([0, 0, 1, 0, 1, 0], .icon),
        (Array("\u{FEFF} <?xml version=\"1.0\"?>\n<svg xmlns=\"…\"/>".utf8), .svg),
        (Array("<!-- <html> --><!DOCTYPE svg [<!ENTITY a \"]>\">]>\r\n<?x y?><s:svg xmlns:s='…'>".utf8), .svg),
        (Array("<svg>".utf8), .svg),
        (Array("<!-- \(String(repeating: "license ", count: 500))--><svg>".utf8), .svg),
    ]

    @Test func `the format of an image follows from its first bytes`() throws {
        for (bytes, format) in Self.samples {
            #expect(ImageFormat(of: Data(bytes)) == format)
            // The indices of a slice do not begin at 0.
            #expect(ImageFormat(of: Data([9, 9, 9] + bytes).dropFirst(3)) == format)
        }
    }

    @Test(arguments: [
        "", "B", "RIFF", "<html><body/></html>", "{\"error\":1}", "svg", "<svgx>", "< svg>", "<!-- <svg>",
        "<!DOCTYPE html><html><body><svg viewBox=\"0 0 1 1\"></svg>", "<!-- --> text <svg>",
        "<!DOCTYPE html [ <svg>",
        "BM is no picture, but a text of some length that begins with these two letters.",
    ])
    func `data that is not an image is rejected`(text: String) {
        #expect { try ImageData(Data(text.utf8)) } throws: { ($0 as? NetworkError)?.code == .undecodableResult }
    }

    @Test func `an image endpoint returns the image, or the result of a custom decoder`() async throws {
        struct Picture: Sendable, Equatable { let count: Int }
        let bench = try OperationBench()
        let bytes = Self.samples[0].bytes
        bench.server.route("GET", "/cover") {
            .bytes(bytes).with("Content-Type", $0["Accept"] == "image/*" ? "image/png" : "")
        }
        bench.server.route("GET", "/page") { _ in .bytes(Array("<html/>".utf8)).with("Content-Type", "image/png") }
        var base = NetworkBase(bench.server.url("/"))
        base.session = bench.session
        base.callbackQueue = bench.callbacks
        let image = try await base.image("cover", ["size": 7]).run()
        #expect(image.data == Data(bytes) && image.format == .png)
        let own = Endpoint<Picture>("GET", "cover", headers: ["Accept": "image/*"]) { data, _, _ in
            Picture(count: try ImageData(data).data.count)
        }
        #expect(try await base.operation(for: own).run() == Picture(count: bytes.count))
        #expect(await failure(of: base.image("page"))?.code == .undecodableResult)
        #expect(bench.server.requests[0].query == "size=7")
    }
}
