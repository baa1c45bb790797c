// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Redaction of logs", .timeLimit(.minutes(1)))
struct LogRedactionTests {
    private static let secretNames = """
        password Password PASSWD userPassword db_pwd pwd passphrase passcode passCode pass_code pass PASS psk
        token accessToken access_token refresh-token idToken X-Auth-Token csrf _csrf csrfToken xsrf X-XSRF-TOKEN
        secret client_secret clientSecret Authorization Proxy-Authorization Cookie Set-Cookie session sessionId JSESSIONID
        signature X-Hub-Signature sig X-Sig hmac X-Shopify-Hmac-Sha256 DPoP dpop_nonce credential credentials
        client_assertion code_verifier SAMLResponse jwt bearer auth X-Auth key apiKey api_key X-API-Key privateKey private_key
        privatekey accesskey encryptionkey sshkey sshKeys signingkey masterkeys subscriptionKey Ocp-Apim-Subscription-Key
        pin PIN userPin otp totp totp_secret mfa mfa_code 2fa 2FA two2fa tfa cvc cvv sid ssn iban
        code device_code deviceCode devicecode user_code userCode usercode verificationCode verification_code
        smsCode smscode authCode authorization_code recoveryCodes recovery_codes backupcodes inviteCode promoCode accessCode
        oneTimeCode onetimecode phoneCode securityCode pinCode qrCode unlockcode ticket serviceTicket service_ticket mnemonic
        seed walletSeed seedPhrase pan card_pan cardNumber card_number creditCard socialSecurityNumber
        """
    private static let plainNames = """
        name user userName email id title keyboard author authors Monkey monkeys turkey hotkey primarykey publickey
        statusCode status_code status-code httpStatusCode errorCode error_codes exitCode responseCode countryCode country_code
        ISOCountryCode zipCode zip-code zipcode postalCode postcode languageCode currencyCode currencyCodes areaCode stateCode
        encode decode barcode geocode unicode opcode transcode colorCode closeCode codec decoder codename
        Content-Type Content-Length Accept ETag Location opinion spinner shipping pants expand seeds tickets seedling
        compass bypass passenger tokyo page cursor next limit offset nodes
        """

    @Test func `names of secrets are recognized in every spelling, and similar harmless names are shown`() {
        for name in Self.secretNames.split(whereSeparator: \.isWhitespace).map(String.init) {
            #expect(LogRedaction.secrets.hides(name), "\(name) is shown")
            #expect(!LogRedaction.none.hides(name))
        }
        for name in Self.plainNames.split(whereSeparator: \.isWhitespace).map(String.init) {
            #expect(!LogRedaction.secrets.hides(name), "\(name) is hidden")
            #expect(LogRedaction.secrets(and: name.uppercased()).hides(name))
        }
        for name in ["pass\u{301}word", "to\u{200D}ken", "\u{301}password", "api\u{FE0F}Key", "user_pi\u{200D}n"] {
            #expect(LogRedaction.secrets.hides(name), "\(name.debugDescription) is shown")
        }
    }

    /// Texts, and the same texts after redaction.
    private static let texts: [(text: String, shown: String)] = [
        ("grant_type=password&password=S3CRET&scope=a", "grant_type=password&password=***&scope=a"),
        ("Authorization: Bearer S3CRET", "Authorization: ***"), ("Bearer S3CRET", "Bearer ***"),
        ("bearer S3CRET==", "bearer ***"), ("it was sent with Basic dXNlcjpTM0NSRVQ=", "it was sent with Basic ***"),
        ("see eyJhbGciOiJub25lIn0.eyJhIjoiUzNDUkVUIn0.S3CRET, and go on", "see ***, and go on"),
        ("x=eyJhbGciOiJub25lIn0.e30.S3CRET", "x=***"), ("eyJhbGciOiJub25lIn0.e30.", "***"),
        (
            #"mutation { login(user: "anna", password: "S3CRET") { token } }"#,
            #"mutation { login(user: "anna", password: "***") { token } }"#
        ),
        (
            #"mutation M($password: String!) { login(password: $password) { id } }"#,
            #"mutation M($password: String!) { login(password: $password) { id } }"#
        ),
        (
            #"{ login(password: """S3CRET "quoted" """, user: "anna") }"#,
            #"{ login(password: """***""", user: "anna") }"#
        ),
        (#"{ login(pin: 1234) }"#, #"{ login(pin: ***"#),
        (#"say {"token":"S3C\"RET","n":1}"#, #"say {"token":"***","n":1}"#),
        (#"say {\"token\":\"S3CRET\",\"n\":1}"#, #"say {\"token\":\"***\",\"n\":1}"#),
        (#"say {"pin":1234,"secret":["S3CRET","]"],"a":2}"#, #"say {"pin":0,"secret":"***","a":2}"#),
        (#"say {"session":{"id":"S3CRET"}} here"#, #"say {"session":"***"} here"#),
        ("password: S3CRET, S3CRET\nnext: line", "password: ***\nnext: line"),
        ("password=\"S3CRET S3CRET\" user=anna", "password=\"***\" user=anna"),
        ("password = 'S3CRET", "password = '***"),
        ("pass\u{301}word=S3CRET", "pass\u{301}word=***"), ("password=\u{301}S3CRET", "password=***"),
        ("the code: S3CRET", "the code: ***"), ("error code: 404", "error code: 404"), ("code=S3CRET", "code=***"),
        ("password%5B%5D=S3CRET", "password%5B%5D=***"), ("password=***, and more", "password=***, and more"),
        ("It is 12:30, and the ratio is 3:1.", "It is 12:30, and the ratio is 3:1."),
        ("Bearer of bad news", "Bearer of bad news"), ("A basic course", "A basic course"),
        ("token expired", "token expired"),
        ("https://a.example/b", "https://a.example/b"), ("a=b", "a=b"), ("", ""), ("=", "="), (":", ":"), ("\"", "\""),
        (#"bad header "Authorization": Bearer S3CRET"#, #"bad header "Authorization": ***"#),
        (#""password": S3CRET horse battery"#, #""password": ***"#),
        (#"{"user" => "a", "password" => "S3CRET"}"#, #"{"user" => "a", "password" => "***"}"#),
        (#"if "password" == "S3CRET""#, #"if "password" == "***""#),
        ("password=$2b$10$S3CRET", "password=***"), ("$password = $S3CRET;", "$password = ***"),
        ("password=***!S3CRET", "password=***"), ("1=2, 3:4", "1=2, 3:4"),
        ("Bearer%2520S3CRET1 is %20", "Bearer%2520*** is %20"), ("a=Basic=dTpTM0NSRVQ=&b=1", "a=Basic=***&b=1"),
        ("x%3DeyJhbGciOiJub25lIn0.e30.S3CRET%26b", "x%3D***%26b"), ("Basic%20dTpTM0NSRVQ%3D%26b", "Basic%20***%26b"),
        ("(x/Bearer \"S3CRET1\", and more)", "(x/Bearer \"***\", and more)"), ("Bearer %", "Bearer %"),
        ("POST /oauth/token HTTP/1.1", "POST /oauth/token HTTP/1.1"), ("Bearer\nof bad news", "Bearer\nof bad news"),
        ("100% of Be\u{301}arer S3CRET1\u{301}.", "100% of Be\u{301}arer ***"),
        ("token", "token"), ("token:", "token:"), ("token=\\", "token=***"), ("token:\"", "token:\"***"),
    ]

    @Test func `named secrets within a plain text are redacted`() throws {
        for (text, shown) in Self.texts {
            #expect(LogRedaction.secrets.withoutNamedSecrets(text) == shown)
            #expect(LogRedaction.none.withoutNamedSecrets(text) == text)
        }
    }

    @Test func `random texts do not crash the redaction, and texts without secrets stay unchanged`() {
        let pieces = [
            "token", "\"", "'", "\\", ":", "=", "{", "}", "[", "]", " ", "\n", "$", "***", "eyJ", ".", "Bearer",
            "\u{301}",
            "&", "é", "1", "\"\"\"",
        ]
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 3_000, soak: 300_000)) {
            var generator = SeededGenerator(seed: seed)
            let parts = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                pieces.randomElement(using: &generator) ?? ""
            }
            let text = parts.joined()
            let shown = LogRedaction.secrets.withoutNamedSecrets(text)
            if Set(parts).isDisjoint(with: ["token", "Bearer", "eyJ"]) { #expect(shown == text, "seed \(seed)") }
        }
    }

    @Test func `pairs of names and values, and texts within a body, are redacted`() throws {
        let url = try #require(URL(string: "https://example.com/"))
        let body = #"""
            {"pairs":[{"name":"password","value":"S3CRET"},{"value":"S3CRET","key":"api_key"},{"name":"a","value":"shown"}],
            "headers":["Authorization: Bearer S3CRET","Accept: shown"],"form":"grant_type=password&password=S3CRET",
            "query":"mutation { login(user:\"shown\", password:\"S3CRET\") { id } }"}
            """#
        let request = try NetworkRequest(
            "POST", url: url, headers: ["Content-Type": "application/json"], body: .data(Data(body.utf8)))
        let command = request.curlCommand()
        #expect(!command.contains("S3CRET") && command.components(separatedBy: "shown").count == 4, "\(command)")
    }

    @Test func `in a list of texts, only the text after the name of a secret is redacted`() {
        let lists = [
            #"["X-Api-Key","S3CRET","Accept","*/*"]"#: #"["X-Api-Key","***","Accept","*/*"]"#,
            #"["Accept", "a", "cookie" , "S3CRET" ]"#: #"["Accept", "a", "cookie" , "***" ]"#,
            #"[["token","S3CRET","S3CRET"],"a"]"#: #"[["token","***","***"],"a"]"#,
            #"{"a":["token"],"b":["c"]}"#: #"{"a":["token"],"b":["c"]}"#,
            #"["token",["a"],"b"]"#: #"["token",["a"],"b"]"#,
            #"["the token expired","a"]"#: #"["the token expired","a"]"#,
            #"["token","S3C"#: #"["token","***"#,
        ]
        for (list, shown) in lists { #expect(LogRedaction.secrets.withoutSecrets(inHeader: list) == shown) }
    }

    @Test func `custom names are redacted in every output, including URLs`() throws {
        let url = try #require(URL(string: "https://example.com/a;customer=S3CRET/b?c=S3CRET"))
        let redaction = LogRedaction.secrets(and: "customer")
        let request = try NetworkRequest(url: url)
        let options = with(NetworkArchive.Options()) { $0.redaction = redaction }
        let (lines, archive) = (EventRecorder<String>(), NetworkArchive(options))
        let log = NetworkLog(level: .bodies, redaction: redaction) { lines.record($0) }
        let sent = with(NetworkEvent(.sending)) { $0.request = request }
        var ended = NetworkEvent(.attemptEnded)
        ended.request = request
        ended.error = NetworkError(code: .timedOut, phase: .receiving, message: "Late.", request: request.summary)
        ended.ending = .failure
        for event in [sent, ended] {
            log.observe(event)
            archive.observe(event)
        }
        let outputs =
            lines.events + [
                request.curlCommand(redaction: redaction), String(decoding: try archive.har(), as: UTF8.self),
            ]
        #expect(outputs.count == 4)
        for text in outputs { #expect(!text.contains("S3CRET") && text.contains("customer=***"), "\(text)") }
        #expect(request.curlCommand(redaction: .none).contains("customer=S3CRET/b?c=S3CRET"))
        #expect(request.curlCommand().contains("customer=S3CRET/b?c=***"))
    }

    @Test(arguments: [LogRedaction.secrets, .none])
    func `secrets in the texts of an error are redacted in every output`(_ redaction: LogRedaction) async throws {
        let url = try #require(URL(string: "https://example.com/"))
        let failure = NetworkError(
            code: .transferFailed, phase: .receiving, message: "It failed at /cb?access_token=S3CRET",
            underlying: .init(domain: "own", number: 1, text: "It sent Bearer S3CRET1"))
        let options = with(NetworkArchive.Options()) { $0.redaction = redaction }
        let (lines, archive) = (EventRecorder<String>(), NetworkArchive(options))
        let log = NetworkLog(redaction: redaction) { lines.record($0) }
        let sent = try with(NetworkEvent(.sending)) { $0.request = try NetworkRequest(url: url) }
        let ended = with(NetworkEvent(.attemptEnded)) {
            ($0.request, $0.error, $0.ending) = (sent.request, failure, .failure)
        }
        for event in [sent, ended] {
            log.observe(event)
            archive.observe(event)
        }
        let stub = StubSession(), recorder = RecordingSession(over: stub, redaction: redaction)
        stub.route(nil, "*") { _ in StubAnswer(.fail(failure)) }
        let operation = NetworkDataOperation(url: url, urlSession: recorder) { data, _ in data.count }
        operation.start()
        try await operation.expectFailure(.transferFailed)
        for data in try [Data(lines.events.joined().utf8), archive.har(), recorder.recording.data()] {
            let text = String(decoding: data, as: UTF8.self)
            #expect(text.contains("It failed at") && text.contains("S3CRET") == redaction.keepsSecrets, "\(text)")
        }
    }

    @Test func `an invisible character does not hide a secret from the redaction`() throws {
        let url = try #require(URL(string: "https://example.com/"))
        let values = [
            "Bearer\u{200B} S3CRET1", "/\u{200B}/u:S3CRET@host/", "e\u{200B}yJhbGciOiJub25lIn0.e30.S3CRET",
            "tok\u{2060}en=S3CRET",
        ]
        for value in values {
            #expect(!"\(HeaderFields.Field("X-Info", value))".contains("S3CRET"), "\(value.debugDescription)")
            let lines = EventRecorder<String>()
            let log = NetworkLog(level: .bodies) { lines.record($0) }
            var event = NetworkEvent(.sending)
            event.request = try NetworkRequest(
                "POST", url: url, headers: ["X-Info": value],
                body: .data(try JSONEncoder().encode(["a": [value]])))
            log.observe(event)
            let text = lines.events.joined()
            #expect(!text.contains("S3CRET") && text.contains("X-Info") && text.contains("[\""), "\(text)")
        }
    }

    @Test func `a combining character does not hide a secret from the redaction`() throws {
        let fields: HeaderFields = [
            "Location": "/a?\u{301}S3CRET", "Link": "<b#\u{200D}S3CRET>; rel=next", "X-Next": "//u:S3CRET@\u{301}host/",
        ]
        #expect(!"\(fields)".contains("S3CRET"), "\(fields)")
        let url = try #require(URL(string: "https://example.com/"))
        let form = "a=1&\u{301}password=S3CRET&token=\u{301}S3CRET&b=2"
        let request = try NetworkRequest(
            "POST", url: url, headers: ["Content-Type": "application/x-www-form-urlencoded; charset=utf-8"],
            body: .data(Data(form.utf8)))
        let command = request.curlCommand()
        #expect(!command.contains("S3CRET") && command.hasSuffix("&b=2' \\\n  'https://example.com/'"), "\(command)")
        #expect(command.unicodeScalars.contains("'a=1&".unicodeScalars))
    }
}
