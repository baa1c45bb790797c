// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import Testing

@Suite("Secrets that are recognized by their values", .timeLimit(.minutes(1)))
struct SecretValuesTests {
    /// Values of a header with a harmless name.
    private static let values = [
        "Bearer S3CRET", "bearer S3CRET, more", "Bearer\tS3CRET", "Bearer  S3CRET==", "Bearer+S3CRET",
        "Bearer%20S3CRET",
        "Basic dTpTM0NSRVQ=", "Basic YTpi", "a, Token S3CRET1", "token=S3CRET", "password\t=\tS3CRET",
        "a=1; pin: S3CRET",
        "token%3DS3CRET", "a%26token%253DS3CRET", "token*0=\"S3C\"; token*1=\"S3CRET\"", "{\"password\":\n\"S3CRET\"}",
        #"{"name":"password","value":"S3CRET"}"#, #"{"name":"password","name":"x","value":"S3CRET"}"#,
        #"{"a":"{\"id\":\"token\",\"content\":\"S3CRET\"}"}"#, #"[["X-Api-Key","S3CRET"],["a","b"]]"#,
        #"{"token=S3CRET":1}"#, "eyJhbGciOiJub25lIn0.e30.S3CRET", "https://a.example/b;token=S3CRET",
        "Bearer realm=\"x\", Basic dTpTM0NSRVQ=", "Authorization: Bearer\n S3CRET", "-- password:\n     S3CRET",
        // A scheme after another character.
        "a=Bearer S3CRETopaque1", "a=Bearer%20S3CRET1", "value=Basic dTpTM0NSRVQ=", "Basic=dTpTM0NSRVQ=",
        "x/Bearer S3CRET1", "a%3DBearer%20S3CRET1", "Basic%3DdTpTM0NSRVQ%3D", "a=Basic+dTpTM0NSRVQ=, more",
        "x-Bearer S3CRET1", "a=b Basic = dTpTM0NSRVQ=", "a%3DeyJhbGciOiJub25lIn0.e30.S3CRET",
        "error=x,scope=Bearer+S3CRET1", "Token a=Bearer S3CRET1",
        // A character between the scheme and its credential.
        "Bearer \"S3CRET1\"", "Bearer 'S3CRET1'", "Bearer <S3CRET1>", "Bearer (S3CRET1)", "Bearer\nS3CRET1",
        "Bearer\r\n\tS3CRET1", "Bearer%2520S3CRET1", "Bearer%09S3CRET1", "Bearer%0AS3CRET1", "Bearer%2BS3CRET1",
        "Bearer%25252520S3CRET1", "Bearer\u{A0}S3CRET1", "Bearer%C2%A0S3CRET1", "Bearer\u{200B} S3CRET1",
        "Bea\u{200B}rer S3CRET1", "Bearer: \\\"S3CRET1\\\"", "token \"S3CRET1\"", "Bearer\u{2028}S3CRET1",
        // Keys in the format of a well-known service.
        "ghp_S3CRETabcdefghijklmnopqrstuvwxyz0123", "a key: AKIAS3CRET0123456789", "key=sk_live_S3CRETabcdefghij",
        "SSWS S3CRET1", "https://a.example/glpat-S3CRETabcdefghij0123", "hf_S3CRETabcdefghijklmnopqrstuvwxyz",
        "npm_S3CRETabcdefghijklmnopqrstuvwxyz0123", "pypi-AgEIcHlwaS5vcmcS3CRETabcdefghijklmnopqrstuvwxyz0123",
        "SG.S3CRETabcdefghijklmno.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
        // The same kind of key at the end of a sentence or between punctuation.
        "The key is ghp_S3CRETabcdefghijklmnopqrstuvwxyz0123.", "AKIAS3CRET0123456789... is old",
        "AKIAS3CRET0123456789_",
        "AIzaS3CRETabcdefghijklmnopqrstuvwxyz012-.", "key-hf_S3CRETabcdefghijklmnopqrstuvwxyz",
        "a.AKIAS3CRET0123456789-",
        // A credential that contains punctuation.
        "Bearer id012345:S3CRETopaque1", "via=1; Bearer opaque123!S3CRET1, more",
        // Names and values in the same list.
        #"["Accept","*/*","X-Api-Key","S3CRET"]"#, #"{"rawHeaders":["authorization","S3CRET","Accept","*/*"]}"#,
    ]
    /// Values that stay unchanged.
    private static let plain = [
        "Basic realm=\"a: b\", charset=\"UTF-8\"", "Bearer realm=\"x\", error=\"invalid_token\"", "Basic realm=x",
        "Bearer resource_metadata=\"https://a.example/b\"", "Digest realm=\"x\", nonce=\"abc\", qop=\"auth\"",
        "https://auth.example:8443/a", "text/html; charset=utf-8", "max-age=60, private", "Basic plan", "token expired",
        "Mon, 23 Nov 2026 17:24:38 GMT", "bytes 0-9/10", "sha-256=:YWJj:", #"{"a":[1, "b"]}"#, "[a", "*", "",
        "POST /oauth/token HTTP/1.1", "if (token < lastToken1) { token(lastToken1) }", "x-token lastToken1",
        "a/token;v=lastToken1", "a.basic, someName1", "Basic realm=someName1", #"["the token is old","next"]"#,
        #"["token",{"a":"b"},"c"]"#, #"["token",5,"c"]"#,
        "sk_live_", "ghp_short", "AKIA and so on", "ASIAN-RECIPES-OF-THE-WEEK", "ASIA-PACIFIC-NORTHEAST-1",
        "ASIA_SALES_2024_REPORT.pdf", "hf_transformers-4.40.1-cpu", "AKIAsmallletters00000",
        "npm_install_log.txt", "pypi-mirror.example.com", "SG.com/index.html",
    ]

    private static func isShown(_ text: String) -> Bool {
        ["S3CRET", "YTpi", "dTpTM0NSRVQ"].contains { text.contains($0) }
    }

    @Test func `no header shows a secret in any output, whatever its name`() throws {
        let url = try #require(URL(string: "https://example.com/a;jsessionid=S3CRET/eyJhbGciOiJub25lIn0.e30.S3CRET"))
        for value in Self.values {
            let header = HeaderFields.Field("X-Info", value)
            #expect(!Self.isShown("\(header)"), "\(value): \(header)")
            #expect(LogRedaction.secrets.hides(header) && !LogRedaction.none.hides(header), "\(value)")
            // A request rejects line breaks in headers.
            guard !value.contains(where: \.isNewline) else { continue }
            let isJSON = value.hasPrefix("{") || value.hasPrefix("[")
            let type = isJSON ? value : "text/x; \(value)"
            let request = try NetworkRequest(url: url, headers: ["X-Info": value, "Content-Type": type])
            #expect(!Self.isShown(request.curlCommand()) && !Self.isShown("\(request)"), "\(request.curlCommand())")
            let archive = NetworkArchive()
            var event = NetworkEvent(.sending)
            event.request = request
            archive.observe(event)
            event = NetworkEvent(.responded)
            event.head = ResponseHead(url: url, status: 200, headers: request.headers, reason: "token=S3CRET")
            archive.observe(event)
            event = NetworkEvent(.attemptEnded)
            event.ending = .success
            archive.observe(event)
            let file = String(decoding: try archive.har(), as: UTF8.self)
            #expect(!Self.isShown(file) && file.contains("X-Info"), "\(file)")
        }
        for value in Self.plain {
            let header = HeaderFields.Field("X-Info", value)
            #expect("\(header)" == "X-Info: \(value)" && !LogRedaction.secrets.hides(header))
        }
    }

    @Test func `a body shows no secret in texts or in pairs of names and values`() throws {
        let url = try #require(URL(string: "https://example.com/"))
        let texts = Self.values.map { value in
            String(decoding: (try? JSONEncoder().encode([value])) ?? Data(), as: UTF8.self)
        }
        let forms = [
            "name=password&value=S3CRET&a=shown", "value=S3CRET&key=api_key", "token[0]=S3CRET&token[1]=S3CRET",
            "token%3DS3CRET=1", "Bearer%20S3CRET1=1", "a=Bearer+S3CRET", "a=Bearer%20S3CRET", "a=token%3DS3CRET",
            "a=%7B%22token%22%3A%22S3CRET%22%7D",
        ]
        for (body, type) in texts.map({ ($0, "application/json") })
            + forms.map({ ($0, "application/x-www-form-urlencoded") })
        {
            let request = try NetworkRequest(
                "POST", url: url, headers: ["Content-Type": type], body: .data(Data(body.utf8)))
            #expect(!Self.isShown(request.curlCommand()), "\(body): \(request.curlCommand())")
        }
    }

    @Test func `indented lines below the name of a secret are redacted, and other lines are not`() {
        func shown(_ text: String) -> String { LogRedaction.secrets.withoutNamedSecrets(text) }
        #expect(
            shown("user:\n  token: |\n    a\n    b\n  name: c") == "user:\n  token: ***\n    ***\n    ***\n  name: c")
        #expect(shown("token:\nname: c") == "token:\nname: c")
        #expect(shown("{\"token\" :\r\n \"a\", \"b\": 1}") == "{\"token\" :\r\n \"***\", \"b\": 1}")
    }

    @Test func `the redaction of a long text takes linear time`() {
        let count = 30_000
        for piece in [
            "token=&", "token=\n", "?a=", "//a:", "%25", "token:\n ", "[", "\"token\":", "Bearer ", "eyJ.",
            "Bearer+", "Basic+realm=", "Basic=", "a=Bearer \"", "%2520", "Bearer%2520\"", "+=",
        ] {
            _ = LogRedaction.secrets.withoutSecrets(inHeader: String(repeating: piece, count: count / piece.count))
        }
    }
}
