// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

@Suite("Changes to a request")
struct RequestChangeTests {
    private func request() throws -> NetworkRequest {
        try NetworkRequest(
            "POST", url: #require(URL(string: "https://example.com/a?b=1&c=2")),
            headers: ["X-Token": "1", "Accept": "text/plain", "x-token": "2"],
            body: .data(Data("1".utf8)).withContentType("application/json"))
    }

    @Test func `setting a header replaces all values of that name and keeps the other headers`() throws {
        let changed = try request().with("X-TOKEN", " 3 ")
        #expect(changed.headers.map(\.name).sorted() == ["Accept", "Content-Type", "X-TOKEN"])
        #expect(changed.headers["x-token"] == "3")
        #expect(try changed.method == "POST" && changed.url == request().url)
        #expect(try changed.body.length == request().body.length)
    }

    @Test(
        "A change that would make a request invalid is rejected",
        arguments: [
            ("X-A", "1\r\n2", NetworkError.Code.invalidHeaderValue), ("X A", "1", .invalidHeaderName),
            ("Host", "other", .reservedHeader), ("Content-Length", "7000", .bodyLengthMismatch),
        ])
    func refusals(name: String, value: String, code: NetworkError.Code) throws {
        let request = try request()
        let error = #expect(throws: NetworkError.self) { try request.with(name, value) }
        #expect(error?.code == code)
    }

    @Test func `setting a query item replaces all items of that name`() throws {
        let url = try request().with(query: "b", "x y&z").url
        #expect(url.absoluteString == "https://example.com/a?c=2&b=x%20y%26z")
    }

    @Test func `setting a query item replaces items of that name that a form encoded`() throws {
        let query = try FormEncoder().encode(["my key": "1", "other": "a b"])
        let url = try #require(URL(string: "https://example.com/a?my%20key=2&\(query)"))
        let changed = try NetworkRequest(url: url).with(query: "my key", "3").url
        #expect(changed.absoluteString == "https://example.com/a?other=a+b&my%20key=3")
    }

    @Test(
        "The rest of the query stays the same byte for byte, and the new value is encoded",
        arguments: [
            ("phone=%2B43&t=a+b/c==", "phone=%2B43&t=a+b/c==&key=1%2B1%3D2%2F%C3%A4"), ("", "key=1%2B1%3D2%2F%C3%A4"),
            ("a&&b=%7e", "a&&b=%7e&key=1%2B1%3D2%2F%C3%A4"), ("k%65y=2&key&keys=3", "keys=3&key=1%2B1%3D2%2F%C3%A4"),
        ])
    func exactQuery(old: String, new: String) throws {
        let url = try #require(URL(string: "https://example.com/a" + (old.isEmpty ? "" : "?\(old)")))
        let changed = try NetworkRequest(url: url).with(query: "key", "1+1=2/\u{E4}")
        #expect(changed.url.absoluteString == "https://example.com/a?\(new)")
    }

    @Test func `a new body replaces the content type`() throws {
        let changed = try request().with(body: .data(Data("x".utf8)))
        #expect(changed.headers["Content-Type"] == nil && changed.body.length == 1)
        let form = try request().with(body: .data(Data("x".utf8)).withContentType("text/plain"))
        #expect(form.headers["Content-Type"] == "text/plain")
    }
}
