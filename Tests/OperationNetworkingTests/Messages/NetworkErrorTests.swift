// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct NetworkErrorTests {
    @Test(arguments: [
        ("http://user:secret@host:8080/a?token=secret&x=&secret#secret", "http://host:8080/a?token=***&x=***&***"),
        ("https://[::1]/a%20b", "https://[::1]/a%20b"), ("http://host?a=b%26c", "http://host?a=***"),
    ])
    func `a request summary contains no secrets`(text: String, summary: String) throws {
        let url = try #require(URL(string: text))
        #expect(RequestSummary(method: "GET", url: url).url == summary)
    }

    @Test func `an error describes what failed, where, and the underlying error`() throws {
        var error = NetworkError(
            code: .truncatedBody, phase: .receiving, message: "The body is cut short.",
            request: RequestSummary(method: "GET", url: try #require(URL(string: "http://host/"))),
            underlying: .init(domain: "libcurl", number: 18, text: "transfer closed"))
        error.status = 200
        #expect(
            error.description
                == "[truncatedBody while receiving] GET http://host/ (status 200): The body is cut short. "
                + "[libcurl 18: transfer closed]")
        #expect(error.localizedDescription == "The body is cut short.")
        #expect(!error.isUnsent)
    }
}
