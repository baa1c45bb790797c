// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct FormEncoderTests {
    struct Person: Encodable {
        var firstName = "Anna Ö"
        var age = 7
        var isHere = true
        var tags = ["a b", "c&d"]
        var address = Address()
        var nothing: String?
    }

    struct Address: Encodable {
        var homeURL = URL(string: "https://example.com/a?b=c")
        var lines = [["x"], ["y", "z"]]
    }

    struct Explicit: Encodable {
        enum Key: String, CodingKey { case present, absent }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(1.5, forKey: .present)
            try container.encodeNil(forKey: .absent)
        }
    }

    @Test func `a value is encoded pair by pair in the order of its properties`() throws {
        #expect(
            try FormEncoder().text(of: Person())
                == "firstName=Anna+%C3%96&age=7&isHere=true&tags%5B%5D=a+b&tags%5B%5D=c%26d"
                + "&address%5BhomeURL%5D=https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc"
                + "&address%5Blines%5D%5B%5D%5B%5D=x&address%5Blines%5D%5B%5D%5B%5D=y&address%5Blines%5D%5B%5D%5B%5D=z")
    }

    @Test func `all formats can be configured`() throws {
        var encoder = FormEncoder()
        encoder.arrayName = { "\($0)[\($1)]" }
        encoder.boolean = { $0 ? "1" : "0" }
        encoder.nilText = "null"
        encoder.writesSpacesAsPlus = false
        encoder.nestedName = { "\($0).\($1)" }
        encoder.key = FormEncoder.snakeCase
        #expect(
            try encoder.text(of: Person())
                == "first_name=Anna%20%C3%96&age=7&is_here=1&tags%5B0%5D=a%20b&tags%5B1%5D=c%26d"
                + "&address.home_url=https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc"
                + "&address.lines%5B0%5D%5B0%5D=x&address.lines%5B1%5D%5B0%5D=y&address.lines%5B1%5D%5B1%5D=z")
        #expect(try encoder.text(of: Explicit()) == "present=1.5&absent=null")
        encoder.nilText = ""
        #expect(try encoder.text(of: Explicit()) == "present=1.5&absent=")
        encoder.arrayName = { name, _ in name }
        #expect(try encoder.text(of: ["a": [1, 2]]) == "a=1&a=2")
    }

    @Test func `dates, data and numbers are encoded in the configured format`() throws {
        let date = Date(timeIntervalSince1970: 981_173_106.5)
        var encoder = FormEncoder()
        #expect(try encoder.text(of: ["at": date]) == "at=2001-02-03T04%3A05%3A06Z")
        encoder.date = { "\($0.timeIntervalSince1970)" }
        #expect(try encoder.text(of: ["at": date]) == "at=981173106.5")
        #expect(try encoder.text(of: ["data": Data([255, 254, 253])]) == "data=%2F%2F79")
        #expect(try encoder.text(of: ["n": [1.0, -0.25, 1e300]]) == "n%5B%5D=1&n%5B%5D=-0.25&n%5B%5D=1e%2B300")
        #expect(try encoder.text(of: ["n": Decimal(string: "3.10")]) == "n=3.1")
        #expect(try encoder.text(of: ["n": UInt64.max]) == "n=18446744073709551615")
    }

    @Test func `each character is escaped as the standard requires`() throws {
        let all = String((0...127).map { Character(UnicodeScalar($0)) })
        let kept = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._")
        func expected(_ kept: Set<Character>, space: String) -> String {
            all.unicodeScalars.map { scalar in
                let digits = String(scalar.value, radix: 16, uppercase: true)
                if scalar == " " { return space }
                return kept.contains(Character(scalar)) ? String(scalar) : "%" + (digits.count < 2 ? "0" : "") + digits
            }.joined()
        }
        #expect(try FormEncoder().text(of: ["k": all]) == "k=" + expected(kept.union("*"), space: "+"))
        let percent = with(FormEncoder()) { $0.writesSpacesAsPlus = false }
        #expect(try percent.text(of: ["k": all]) == "k=" + expected(kept.union("~"), space: "%20"))
    }

    @Test func `dictionaries are sorted by their keys, which are not converted`() throws {
        let encoder = with(FormEncoder()) { $0.key = FormEncoder.snakeCase }
        let mixed: [String: Any?] = [
            "someKey": 1, "b": [1, "x", true] as [Any], "a": ["z": nil, "y": 2.5] as [String: Any?], "nil": nil,
            "null": NSNull(), "deep": Optional<Optional<Int>>.some(.some(4)) as Any,
        ]
        #expect(
            try encoder.text(of: mixed) == "a%5By%5D=2.5&b%5B%5D=1&b%5B%5D=x&b%5B%5D=true&deep=4&someKey=1")
        let plain = ["q": 1, "p": 2, "aB": 3]
        #expect(try encoder.text(of: plain) == "aB=3&p=2&q=1")
        #expect(try FormEncoder().text(of: [String: Int]()) == "")
        enum Color: String, Encodable, CodingKeyRepresentable { case lightBlue, darkRed, black }
        #expect(try encoder.text(of: [Color.lightBlue: 1, .darkRed: 2, .black: 3]) == "black=3&darkRed=2&lightBlue=1")
        let numbered = Dictionary(uniqueKeysWithValues: (1...9).map { ($0, ["aB": $0]) })
        let expected = (1...9).map { "\($0)%5BaB%5D=\($0)" }.joined(separator: "&")
        #expect(try encoder.text(of: numbered) == expected)
    }

    @Test(arguments: [
        ("firstName", "first_name"), ("baseURLPath", "base_url_path"), ("URL", "url"), ("a", "a"), ("", ""),
        ("already_snake", "already_snake"), ("x2Y", "x2_y"), ("isHTTP", "is_http"),
    ])
    func `property names are converted to snake case`(name: String, expected: String) throws {
        var encoder = FormEncoder()
        encoder.key = FormEncoder.snakeCase
        struct One: Encodable {
            struct Key: CodingKey {
                var stringValue: String
                var intValue: Int? { nil }
                init(stringValue: String) { self.stringValue = stringValue }
                init?(intValue: Int) { nil }
            }
            let name: String
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                try container.encode(1, forKey: Key(stringValue: name))
            }
        }
        #expect(try encoder.text(of: One(name: name)) == "\(expected)=1")
    }

    class Animal: Encodable { var name = "Tim" }
    final class Dog: Animal {
        enum Key: String, CodingKey { case barks }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(true, forKey: .barks)
            try super.encode(to: container.superEncoder())
        }
    }

    @Test func `inherited properties are encoded as well`() throws {
        #expect(try FormEncoder().text(of: Dog()) == "barks=true&super%5Bname%5D=Tim")
    }

    @Test func `an invalid value is a typed error with its key path`() {
        struct Refusal: Error {}
        struct Refuses: Encodable { func encode(to encoder: any Encoder) throws { throw Refusal() } }
        func failure(_ encode: () throws -> String) -> FormEncodingError? {
            #expect(throws: FormEncodingError.self) { try encode() }
        }
        let list = failure { try FormEncoder().text(of: [1, 2]) }
        #expect(list?.code == .notKeyed)
        #expect(failure { try FormEncoder().text(of: "text") }?.code == .notKeyed)
        let number = failure { try FormEncoder().text(of: ["a": ["b": [1, Double.nan]]]) }
        #expect(number?.code == .notANumber)
        #expect(number?.keyPath == "a.b.1")
        let never = Date(timeIntervalSince1970: .nan)
        for encoder in [FormEncoder(), with(FormEncoder()) { $0.date = { "\($0)" } }] {
            #expect(failure { try encoder.text(of: ["at": never]) }?.code == .notANumber)
        }
        #expect(failure { try FormEncoder().text(of: ["a": Refuses()]) }?.code == .refusedByValue)
        let other = failure { try FormEncoder().text(of: ["a": ["b": Thread.current as Any]]) }
        #expect(other?.code == .refusedByValue)
        #expect(other?.keyPath == "a.b")
        var deep: Any = 1
        for _ in 0..<1000 { deep = ["k": deep] }
        #expect(failure { try FormEncoder().text(of: ["a": deep]) }?.code == .tooDeep)
        let body = #expect(throws: NetworkError.self) { try RequestBody.form(["a": Double.infinity]) }
        #expect(body?.code == .bodyNotEncodable)
        #expect(body?.message.contains("At a:") == true)
    }

    /// A value with two containers in each other for each round, and no other content.
    struct Containers: Encodable {
        enum Key: CodingKey { case inner }
        let rounds: Int

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            for _ in 0..<rounds {
                var list = container.nestedUnkeyedContainer(forKey: .inner)
                container = list.nestedContainer(keyedBy: Key.self)
            }
        }
    }

    @Test func `nested containers that are too deep are an error, even if they are empty`() throws {
        #expect(try FormEncoder().text(of: Containers(rounds: 128)).isEmpty)
        for rounds in [129, 500] {
            let error = #expect(throws: FormEncodingError.self) {
                try FormEncoder().text(of: Containers(rounds: rounds))
            }
            #expect(error?.code == .tooDeep)
        }
    }

    @Test func `random texts survive encoding and decoding`() throws {
        var generator = SeededGenerator(seed: 41)
        for round in 0..<300 {
            let pairs = (0..<Int.random(in: 1...5, using: &generator)).map { index in
                ("\(index)" + randomText(&generator), randomText(&generator))
            }
            let text = try FormEncoder().text(of: Dictionary(uniqueKeysWithValues: pairs))
            let read = text.split(separator: "&", omittingEmptySubsequences: false).map { pair in
                pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { part in
                    part.replacingOccurrences(of: "+", with: " ").removingPercentEncoding
                }
            }
            let expected = pairs.sorted { $0.0 < $1.0 }.map { [$0.0, $0.1] }
            #expect(read == expected, "round \(round)")
        }
    }
}

func randomText(_ generator: inout SeededGenerator) -> String {
    let pool: [ClosedRange<UInt32>] = [0x20...0x7E, 0x00...0x1F, 0xA0...0x2FF, 0x1F600...0x1F64F, 0x202A...0x202E]
    return String(
        String.UnicodeScalarView(
            (0..<Int.random(in: 0...12, using: &generator)).compactMap { _ in
                let range = pool[Int.random(in: 0..<pool.count, using: &generator)]
                return UnicodeScalar(UInt32.random(in: range, using: &generator))
            }))
}
