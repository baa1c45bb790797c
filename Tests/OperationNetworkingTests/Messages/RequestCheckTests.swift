// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(3)))
struct RequestCheckTests {
    private let url: URL

    init() throws {
        url = try #require(URL(string: "http://example.com/path?key=value"))
    }

    /// The error code with which a request is rejected, or `nil` if it is valid.
    private func refusal(
        _ method: String = "GET", _ text: String? = nil, headers: HeaderFields = [:], body: RequestBody = .none,
        options: TransferOptions = .standard
    ) throws -> NetworkError.Code? {
        let target = try text.map { try #require(URL(string: $0), "\($0)") } ?? url
        do {
            _ = try NetworkRequest(method, url: target, headers: headers, body: body, options: options)
            return nil
        } catch {
            #expect(error.phase == .checking && error.isUnsent)
            #expect(!error.description.contains("secret"))
            return error.code
        }
    }

    @Test(arguments: ["", "GE T", "GET\r\nX: y", "GET\0", "GÉT", "GET:", "CONNECT", "connect"])
    func `an invalid method is rejected`(method: String) throws {
        #expect(try refusal(method) == .invalidMethod)
    }

    @Test func `standard methods are converted to upper case, and other methods stay unchanged`() throws {
        #expect(try NetworkRequest("patch", url: url).method == "PATCH")
        #expect(try NetworkRequest("Purge", url: url).method == "Purge")
    }

    @Test(arguments: ["", " ", "X Y", "X:", "X\r\nY", "X\n", "X\0", "Ü", "(X)"])
    func `an invalid header name is rejected`(name: String) throws {
        #expect(try refusal(headers: [name: "secret"]) == .invalidHeaderName)
    }

    @Test(arguments: [
        "secret\r\nX: y", "secret\n", "\rsecret", "secret\0", "secret\r\n folded", "\u{7F}secret", "\u{1}",
    ])
    func `a header value with a control character is rejected`(value: String) throws {
        #expect(try refusal(headers: ["X": value]) == .invalidHeaderValue)
    }

    @Test func `a header value may contain tabs and Unicode, and loses the spaces around it`() throws {
        let request = try NetworkRequest(url: url, headers: ["X": " \ta\tü\u{1F600} \t", "Y": "  ", "Z": ""])
        #expect(Array(request.headers) == [.init("X", "a\tü\u{1F600}"), .init("Y", ""), .init("Z", "")])
    }

    @Test(arguments: ["Host", "connection", "TRANSFER-ENCODING", "Expect", "Proxy-Authorization", "Upgrade", "te"])
    func `a header that is reserved for the session is rejected`(name: String) throws {
        #expect(try refusal(headers: [name: "x"]) == .reservedHeader)
    }

    @Test(arguments: [
        ("ftp://example.com/", NetworkError.Code.unsupportedScheme), ("file:///etc/passwd", .unsupportedScheme),
        ("data:text/plain,x", .unsupportedScheme), ("/relative", .invalidURL), ("http:///path", .missingHost),
        ("http:path", .missingHost), ("http://:80/", .missingHost), ("http://example.com:0/", .invalidURL),
        ("http://example.com:65536/", .invalidURL),
    ])
    func `a URL that cannot be requested is rejected`(text: String, code: NetworkError.Code) throws {
        #expect(try refusal("GET", text) == code)
    }

    @Test(arguments: [
        ("HTTP://Example.com:80/A", "http://example.com/A"), ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("https://127.1/#fragment", "https://127.0.0.1/"), ("http://host", "http://host"),
        ("http://a:b@[fe80::1]/", "http://[fe80::1]/"), ("http://[FE80::1%25eth0]:/x", "http://[fe80::1%25eth0]/x"),
    ])
    func `a URL is normalized before it is sent`(text: String, sent: String) throws {
        let request = try NetworkRequest(url: #require(URL(string: text)))
        #expect(request.url.absoluteString == sent)
    }

    @Test func `a relative URL with a base is made absolute`() throws {
        let relative = try #require(URL(string: "../c?d", relativeTo: URL(string: "http://host/a/b/")))
        #expect(try NetworkRequest(url: relative).url.absoluteString == "http://host/a/c?d")
    }

    @Test func `a user in the URL becomes an Authorization header, unless there is one`() throws {
        let target = try #require(URL(string: "http://us%20er:sec%0d%0aret@host/"))
        let request = try NetworkRequest(url: target)
        #expect(request.url.absoluteString == "http://host/")
        #expect(request.headers["authorization"] == "Basic " + Data("us er:sec\r\nret".utf8).base64EncodedString())
        let own = try NetworkRequest(url: target, headers: ["Authorization": "Bearer x"])
        #expect(own.headers.values("Authorization") == ["Bearer x"])
        #expect(try NetworkRequest(url: #require(URL(string: "http://@host/"))).headers.isEmpty)
        let alone = try NetworkRequest(url: #require(URL(string: "http://user@host/")))
        #expect(alone.headers["Authorization"] == "Basic dXNlcjo=")
    }

    @Test(arguments: ["GET", "HEAD", "trace"])
    func `a body is rejected if the method does not allow one`(method: String) throws {
        #expect(try refusal(method, body: .data(Data("x".utf8))) == .bodyNotAllowed)
        #expect(try refusal(method, body: .data(Data())) == .bodyNotAllowed)
    }

    @Test func `a Content-Length that differs from the length of the body is rejected`() throws {
        let body = RequestBody.data(Data("1234".utf8))
        for text in ["3", "5", "-4", "+4", "4.0", "", "99999999999999999999", "4,4"] {
            #expect(
                try refusal("POST", headers: ["Content-Length": text], body: body) == .bodyLengthMismatch, "\(text)")
        }
        let request = try NetworkRequest("POST", url: url, headers: ["content-length": "4"], body: body)
        #expect(request.headers.isEmpty && request.body.length == 4)
        #expect(try refusal("POST", headers: ["Content-Length": "1"]) == .bodyLengthMismatch)
        #expect(try refusal("POST", headers: ["Content-Length": "0"]) == nil)
        let stream = RequestBody.stream(canBeSentAgain: false) { throw CancellationError() }
        let stated = try NetworkRequest("POST", url: url, headers: ["Content-Length": "9"], body: stream)
        #expect(stated.body.length == 9)
        #expect(
            try refusal("POST", body: .stream(length: -1, canBeSentAgain: false) { throw CancellationError() })
                == .bodyLengthMismatch)
    }

    @Test func `a time limit of zero or less is rejected`() throws {
        for limit in [Duration.zero, .seconds(-1)] {
            let options = TransferOptions(timeouts: TransferTimeouts(idle: limit))
            #expect(try refusal(options: options) == .invalidLimit)
        }
        #expect(try refusal(options: TransferOptions(timeouts: .none)) == nil)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity, -1, 0, -1e300])
    func `an invalid timeout of a URLRequest is rejected`(interval: Double) throws {
        let request = with(URLRequest(url: url)) { $0.timeoutInterval = interval }
        #expect(throws: NetworkError.self) { try NetworkRequest(request) }
    }

    @Test func `a URLRequest keeps its method, headers, body and timeout`() throws {
        var request = URLRequest(url: url)
        request.httpMethod = "post"
        request.httpBody = Data("body".utf8)
        request.timeoutInterval = 1.5
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        let checked = try NetworkRequest(request)
        #expect(checked.method == "POST" && checked.url == url && checked.body.length == 4)
        #expect(checked.headers["content-type"] == "text/plain")
        #expect(checked.options.timeouts.idle == .milliseconds(1500))
        #expect(checked.options.timeouts.firstByte == .milliseconds(1500))
        request.timeoutInterval = 1e300
        #expect(try NetworkRequest(request).options.timeouts.idle == nil)
    }

    @Test(arguments: [
        ("http://h.com/", "http://h.com:80/", true), ("https://H.com/", "https://h.com:443/a", true),
        ("http://h.com/", "http://h.com:8080/", false), ("https://h.com/", "https://h.com:80/", false),
        ("http://[::1]/", "http://[::1]:80/", true), ("http://h.com/", "https://h.com/", false),
    ])
    func `the default port does not change the origin`(one: String, other: String, isSame: Bool) throws {
        let origins = try [one, other].map { try NetworkRequest(url: #require(URL(string: $0))).origin }
        #expect((origins[0] == origins[1]) == isSame)
    }
}
