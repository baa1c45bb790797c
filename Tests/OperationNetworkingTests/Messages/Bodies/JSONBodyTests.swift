// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct JSONBodyTests {
    struct Greeting: Encodable {
        var text = "Hello"
        var number = 1
    }

    @Test func `a value is encoded as JSON, and its request gets the content type`() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let body = try RequestBody.json(Greeting(), encoder: encoder)
        #expect(try BodyBytes.text(of: body) == #"{"number":1,"text":"Hello"}"#)
        #expect(body.length == 27)
        #expect(body.canBeSentAgain)
        let url = try #require(URL(string: "http://example.com/"))
        #expect(try NetworkRequest("POST", url: url, body: body).headers == ["Content-Type": "application/json"])
        let own: HeaderFields = ["content-type": "application/vnd.api+json"]
        #expect(try NetworkRequest("POST", url: url, headers: own, body: body).headers == own)
    }

    @Test func `a dictionary of mixed values always becomes the same JSON`() throws {
        let body = try RequestBody.json([
            "z": nil, "a": 1, "list": [1, "two", false, nil, ["x": NSNull()]] as [Any?], "someKey": ["n": 1.5],
        ])
        #expect(
            try BodyBytes.text(of: body)
                == #"{"a":1,"list":[1,"two",false,null,{"x":null}],"someKey":{"n":1.5},"z":null}"#)
        #expect(try BodyBytes.text(of: .json(["a": 1])) == #"{"a":1}"#)
        let snake = JSONEncoder()
        snake.keyEncodingStrategy = .convertToSnakeCase
        #expect(try BodyBytes.text(of: .json(["someKey": 1 as Any?], encoder: snake)) == #"{"someKey":1}"#)
    }

    private struct Leak: Error, CustomStringConvertible {
        var description: String { "S3CRET" }
    }

    private struct Secretive: Encodable {
        let ours: Bool

        func encode(to encoder: any Encoder) throws {
            if ours { throw Leak() }
            throw EncodingError.invalidValue(
                "S3CRET", EncodingError.Context(codingPath: encoder.codingPath, debugDescription: "S3CRET is bad"))
        }
    }

    @Test func `the text of an error thrown by a value appears only in the cause`() {
        for ours in [true, false] {
            let error = #expect(throws: NetworkError.self) { try RequestBody.json(["a": Secretive(ours: ours)]) }
            #expect(error?.code == .bodyNotEncodable)
            #expect(error.map { "\($0) \($0.report(showingBody: true))" }?.contains("S3CRET") == false)
            #expect(error?.cause is Leak == ours)
            #expect(error?.cause is EncodingError != ours)
        }
        let number = #expect(throws: NetworkError.self) { try RequestBody.json(["a": [Double.infinity]]) }
        #expect(number?.message.contains("not finite") == true)
    }

    @Test func `the text of an error thrown by a producer appears only in the cause`() throws {
        let body = RequestBody.stream(canBeSentAgain: true) { throw Leak() }
        let error = #expect(throws: NetworkError.self) {
            _ = try BodyReader(body, waker: BodyWaker {})
        }
        #expect(error?.code == .bodyUnreadable && error?.underlying?.text == "Leak")
        #expect(error.map { "\($0) \($0.report(showingBody: true))" }?.contains("S3CRET") == false)
        #expect(error?.cause is Leak)
    }

    @Test func `a value that JSON cannot represent is a typed error with its key path`() {
        let error = #expect(throws: NetworkError.self) {
            try RequestBody.json(["a": ["b": Thread.current as Any?] as Any?])
        }
        #expect(error?.code == .bodyNotEncodable)
        #expect(error?.phase == .checking)
        #expect(error?.message.contains("at a.b:") == true)
        #expect(throws: NetworkError.self) { try RequestBody.json(["a": Double.nan]) }
        var deep: Any = 1
        for _ in 0..<2000 { deep = [deep] }
        #expect(throws: NetworkError.self) { try RequestBody.json(["a": deep as Any?]) }
    }
}
