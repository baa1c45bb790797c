// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheControlTests {
    @Test(
        arguments: [
            ("max-age=10", 10), ("MAX-AGE=10", 10), ("max-age=\"10\"", 10), (" max-age = 10 ", 10),
            ("public, max-age=10", 10),
            ("max-age=10, max-age=5", 5), ("max-age=5, max-age=10", 5), ("max-age=-1", 0), ("max-age=1.5", 0),
            ("max-age=", 0),
            ("max-age", 0), ("max-age=x, max-age=7", 0), ("max-age=99999999999999999999", 2_147_483_647),
            ("max-age=007", 7),
            ("private=\"a, max-age=1\", max-age=10", 10), ("s-maxage=10", nil), ("", nil), ("x\"max-age=1", nil),
            (",,max-age=3,,", 3),
        ] as [(String, Int?)])
    func `an ambiguous max-age is read as the stricter value`(field: String, seconds: Int?) {
        #expect(CacheControl([field]).seconds("max-age") == seconds)
    }

    @Test func `directives of several headers are combined, and Cache-Control overrides Pragma`() {
        let control = CacheControl(["no-cache=\"Set-Cookie\"", "No-Store", "max-stale"])
        #expect(control.has("no-cache") && control.has("no-store") && !control.has("private"))
        #expect(control.maximumStaleness == 2_147_483_647)
        #expect(CacheControl(["max-stale=5"]).maximumStaleness == 5)
        #expect(CacheControl(["max-age=5"]).maximumStaleness == nil)
        #expect(CacheControl(HeaderFields([.init("Pragma", "No-Cache")])).has("no-cache"))
        #expect(!CacheControl(["Pragma": "no-cache", "Cache-Control": "max-age=1"] as HeaderFields).has("no-cache"))
    }

    @Test func `arbitrary text never crashes the parser`() {
        let pieces = ["max-age", "=", ",", "\"", "\\", "1", " ", "no-store", "é", "-"]
        var generator = SeededGenerator(seed: 9111)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...10, using: &generator)
            let text = (0..<count).compactMap { _ in pieces.randomElement(using: &generator) }.joined()
            #expect(CacheControl([text]).seconds("max-age") ?? 0 >= 0)
        }
    }
}
