// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Link headers", .timeLimit(.minutes(1)))
struct LinkHeaderTests {
    private func next(_ values: [String], of relation: String = "next") throws -> String? {
        let url = try #require(URL(string: "https://api.example.com/v1/items?page=1#top"))
        let head = ResponseHead(url: url, status: 200, headers: HeaderFields(values.map { .init("Link", $0) }))
        return head.link(relation)?.absoluteString
    }

    @Test(arguments: [
        (#"<https://api.example.com/v1/items?page=2>; rel="next""#, "https://api.example.com/v1/items?page=2"),
        (#"<https://api.example.com/2>; rel=next"#, "https://api.example.com/2"),
        (#"<https://other.example.com/2>;rel=next"#, "https://other.example.com/2"),
        // Relative references.
        (#"</v1/items?page=2>; rel="next""#, "https://api.example.com/v1/items?page=2"),
        (#"<?page=2>; rel="next""#, "https://api.example.com/v1/items?page=2"),
        (#"<items/2>; rel="next""#, "https://api.example.com/v1/items/2"),
        (#"<//other.example.com/2>; rel="next""#, "https://other.example.com/2"),
        (#"<>; rel="next""#, "https://api.example.com/v1/items?page=1"),
        // Several relations, several links.
        (#"</2>; rel="last next""#, "https://api.example.com/2"),
        ("</2>; rel=\"prev\tnext\"", "https://api.example.com/2"),
        (#"</1>; rel="prev", </3>; rel="next", </9>; rel="last""#, "https://api.example.com/3"),
        (#"</1>;rel=prev,</3>;rel=next"#, "https://api.example.com/3"),
        (#"</2>; rel="next", </3>; rel="next""#, "https://api.example.com/2"),
        (#"</1>; rel="prev",, ,</3> ; rel = "next" ;"#, "https://api.example.com/3"),
        // Uppercase and lowercase letters.
        (#"</2>; REL="NEXT""#, "https://api.example.com/2"),
        // Separators in references, quoted strings and values.
        (#"</a,b;c>; rel="next""#, "https://api.example.com/a,b;c"),
        (#"</1>; title="x, </8>; rel=next"; rel="prev", </2>; rel="next""#, "https://api.example.com/2"),
        (#"</2>; title="say \"</9>; rel=next\", or; not"; rel="next""#, "https://api.example.com/2"),
        (#"</2>; rel="ne\xt""#, "https://api.example.com/2"),
        (#"</2>; title*=UTF-8''%e2%82%ac%20rates; rel="next""#, "https://api.example.com/2"),
        (#"</2>; rel*=UTF-8''next, </3>; rel="next""#, "https://api.example.com/3"),
        (#"</2>; crossorigin; rel="next""#, "https://api.example.com/2"),
        (#"</2>;;; rel="next""#, "https://api.example.com/2"),
        // Only the first rel parameter of a link counts.
        (#"</2>; rel="prev"; rel="next", </3>; rel="next"; rel="prev""#, "https://api.example.com/3"),
        // A link with an anchor belongs to another resource.
        (#"</2>; rel="next"; anchor="/other", </3>; rel="next""#, "https://api.example.com/3"),
        (#"</2>; anchor=""; rel="next", </3>; rel="next""#, "https://api.example.com/3"),
        // Links that cannot be read are skipped.
        (#"/2; rel="next", </3>; rel="next""#, "https://api.example.com/3"),
        (#""</2>; rel=next", </3>; rel="next""#, "https://api.example.com/3"),
        (#"<mailto:a@b.c>; rel="next", </3>; rel="next""#, "https://api.example.com/3"),
        (#"<https://a%20b/>; rel="next", </3>; rel="next""#, "https://api.example.com/3"),
        (#"</2>; rel="next" garbage, </3>; rel="next""#, "https://api.example.com/2"),
        // The user and password of a URL are left out, and bytes that are not valid in a URL are escaped.
        (#"<https://me:secret@api.example.com/2>; rel="next""#, "https://api.example.com/2"),
        (#"</é a>; rel="next""#, "https://api.example.com/%C3%A9%20a"),
    ])
    func `a valid Link header returns the URL of the relation`(value: String, expected: String) throws {
        #expect(try next([value]) == expected)
    }

    @Test(arguments: [
        "", ",", "<", "<>", ">", "</2>", "</2>; rel", "</2>; rel=", #"</2>; rel="""#, #"</2>; rel="prev""#,
        #"</2>; rel="nextpage""#, #"</2>; rel="next-page""#, #"</2>; rel="next"#, #"</2; rel="next""#,
        #"</2>, rel="next""#, #"</2> rel="next""#, #"</2>; title="rel=next""#, #"</2>; rel="next\"#,
        #"<javascript:alert(1)>; rel="next""#, #"<http://h:0/>; rel="next""#,
    ])
    func `an invalid Link header or another relation returns no URL`(value: String) throws {
        #expect(try next([value]) == nil)
    }

    @Test func `several Link headers are read in order`() throws {
        let values = [#"</1>; rel="prev""#, #"</2>; rel="open"#, #"</9>; rel="last", </3>; rel="next""#]
        #expect(try next(values) == "https://api.example.com/3")
        #expect(try next(values, of: "last") == "https://api.example.com/9")
        #expect(try next(values, of: "https://example.com/own") == nil)
        #expect(try next([]) == nil)
    }

    @Test func `a relation can be a URL`() throws {
        let value = #"</2>; rel="https://example.com/Own""#
        #expect(try next([value], of: "https://example.com/own") == "https://api.example.com/2")
    }

    @Test func `arbitrary text never crashes the parser, and long text takes linear time`() throws {
        let pieces = [
            "<", ">", ";", ",", "=", "\"", "\\", "rel", "next", "anchor", " ", "é", "\t", "/2", "*", "\u{0}", "?", "#",
        ]
        for text in SeededGenerator.texts(4_000, of: pieces, most: 14, seed: 8288) {
            let valid = try next([text, "</3>; rel=next"])
            #expect(valid?.hasPrefix("https://api.example.com/") != false, "\(text)")
        }
        for piece in [
            "<", "<>,", "<>;", "\"", "@\"", "</2>;a=\"b\",", "</2>;rel=prev,", "<mailto:a>;rel=next,", " ;", "\\",
        ] {
            #expect(try next([String(repeating: piece, count: 10_000)]) == nil, "\(piece)")
        }
    }
}
