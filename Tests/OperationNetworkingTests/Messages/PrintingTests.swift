// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

struct PrintingTests {
    /// The texts of a value in all ways in which values can be printed.
    private func texts(_ value: Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        return "\(value) \(String(reflecting: value)) \(Optional(value) as Any) \([value]) \(dumped)"
    }

    @Test func `no printed value shows a secret`() throws {
        let url = try #require(URL(string: "https://anna:hidden@example.com/a?token=hidden"))
        let headers: HeaderFields = [
            "Authorization": "Bearer hidden", "Cookie": "id=hidden", "X-Api-Key": "hidden", "Accept": "seen",
        ]
        let request = try NetworkRequest("POST", url: url, headers: headers, body: .data(Data("hidden".utf8)))
        let head = ResponseHead(url: url, status: 200, headers: ["Set-Cookie": "id=hidden", "Server": "seen"])
        for value in [request, head, headers, headers.map { $0 }] as [Any] {
            let text = texts(value)
            #expect(!text.contains("hidden") && text.contains("seen"), "\(text)")
        }
        let secrets: [Any] = [
            Cookie(name: "id", value: "hidden", domain: "h.com"), Credential.password(user: "a", password: "hidden"),
            Credential.token("hidden"), Credential.authorization("hidden"),
        ]
        for value in secrets { #expect(!texts(value).contains("hidden"), "\(texts(value))") }
    }

    #if OPERATIONKIT_LIBCURL
        @Test func `a printed configuration shows no password`() {
            var configuration = CurlSession.Configuration()
            configuration.proxy = .url("http://anna:hidden@h:1", user: "anna", password: "hidden")
            configuration.tls.clientKeyPassword = "hidden"
            for value in [configuration, configuration.proxy, configuration.tls] as [Any] {
                #expect(!texts(value).contains("hidden"), "\(texts(value))")
            }
        }
    #endif
}
