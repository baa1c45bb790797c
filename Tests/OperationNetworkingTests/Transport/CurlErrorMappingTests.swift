// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct CurlErrorMappingTests {
        /// The meanings of libcurl's codes without more specific facts.
        ///
        /// Other codes belong to other protocols.
        private static let table: [(NetworkError.Code, [Int32])] = [
            (.invalidResponse, [1, 8, 43]), (.invalidURL, [3]), (.cannotFindHost, [5, 6]),
            (.cannotConnect, [7, 45, 96]),
            (.connectionLost, [16, 52, 55, 56, 92, 95]), (.truncatedBody, [18]), (.undecodableBody, [23, 61]),
            (.bodyUnreadable, [26]), (.resourcesExhausted, [2, 27, 89, 99]), (.timedOut, [28]),
            (.secureConnectionFailed, [35, 53, 54, 59, 64, 66, 80, 101]), (.sessionUnavailable, [4, 41, 48]),
            (.tooManyRedirects, [47]), (.untrustedCertificate, [51, 60, 77, 82, 83, 90, 91]),
            (.clientCertificateRejected, [58, 98]), (.bodyTooLarge, [63]), (.bodyNotRepeatable, [65]),
            (.proxyFailed, [67, 94, 97]),
        ]

        @Test func `each libcurl error code has an error code and a sentence`() {
            let known = Dictionary(uniqueKeysWithValues: Self.table.flatMap { row in row.1.map { ($0, row.0) } })
            for code in Int32(1)...110 {
                let told = CurlErrorMapping(code: code, phase: .receiving, hasFinalHead: true).codeAndMessage
                #expect(told.0 == known[code] ?? .transferFailed, "\(code)")
                #expect(told.1.hasSuffix("."), "\(code)")
            }
        }

        @Test(
            arguments: [
                (23, .resourcesExhausted), (24, .resourcesExhausted), (12, .resourcesExhausted),
                (105, .resourcesExhausted), (97, .cannotConnect), (99, .resourcesExhausted), (100, .notConnected),
                (101, .notConnected), (113, .notConnected), (111, .cannotConnect), (0, .cannotConnect),
            ] as [(Int, NetworkError.Code)])
        func `the system error determines why a connection failed`(number: Int, code: NetworkError.Code) {
            #expect(CurlErrorMapping(code: 7, phase: .connecting, systemError: number).codeAndMessage.0 == code)
        }

        @Test func `only an error that ends a stream reports that the server did not process the request`() {
            for code in Int32(0)...110 {
                let plain = CurlErrorMapping(code: code, phase: .awaitingResponse).codeAndMessage
                let refused = CurlErrorMapping(code: code, phase: .awaitingResponse, isRefused: true).codeAndMessage
                let isEnd = CurlErrorMapping.endsOfStreams.contains(code)
                #expect((plain.1 != refused.1) == isEnd, "\(code)")
                #expect(refused.0 == (isEnd ? .connectionLost : plain.0), "\(code)")
            }
        }

        @Test func `the same libcurl code has another meaning in another phase`() {
            func code(
                _ code: Int32, _ phase: NetworkError.Phase, _ text: String = "", hasHeaders: Bool = false
            ) -> NetworkError.Code {
                CurlErrorMapping(code: code, phase: phase, text: text, hasReceivedHeaders: hasHeaders).codeAndMessage.0
            }
            #expect(code(0, .awaitingResponse) == .invalidResponse)
            #expect(code(0, .awaitingResponse, hasHeaders: true) == .connectionLost)
            #expect(code(18, .awaitingResponse) == .connectionLost)
            #expect(code(27, .awaitingResponse) == .headerTooLarge)
            #expect(code(100, .awaitingResponse) == .headerTooLarge)
            #expect(code(43, .connecting) == .transferFailed)
            #expect(code(27, .connecting) == .resourcesExhausted)
            #expect(code(56, .connecting) == .proxyFailed)
            #expect(code(56, .awaitingResponse, "Too large response headers: 307279 > 307200") == .headerTooLarge)
            #expect(code(56, .receiving, "Illegal or missing hexadecimal sequence") == .invalidResponse)
            for number in [35, 55, 56] as [Int32] {
                #expect(code(number, .receiving, "tlsv13 alert certificate required") == .clientCertificateRejected)
            }
        }

        private func remark(_ text: String) -> CurlNotice? { Array(text.utf8).withUnsafeBytes { CurlNotice($0) } }

        @Test(
            arguments: [
                ("Using Stream ID: 1 (easy handle 0x7f4dcc0262f0)\n", .stream(1)),
                ("Using Stream ID: 2147483647 (easy handle (nil))", .stream(2_147_483_647)),
                ("[HTTP/2] [13] OPENED stream for https://localhost/a?b\n", .stream(13)),
                ("recveived GOAWAY, error=0, last_stream=99\n", .goAway(lastStream: 99)),
                ("received GOAWAY, error=11, last_stream=0", .goAway(lastStream: 0)),
                ("received GOAWAY, error=-1, last_stream=2147483647\n", .goAway(lastStream: .max >> 1)),
            ] as [(String, CurlNotice)])
        func `relevant log lines are parsed for each libcurl version`(_ text: String, _ expected: CurlNotice) {
            #expect(remark(text) == expected)
        }

        @Test(
            arguments: [
                "", "\n", "U", "received", "Using Stream ID: ", "Using Stream ID: x (easy handle 0x1)\n",
                "Using Stream ID: 1f (easy handle 0x1)\n", "Using Stream ID: 99999999999 (easy handle 0x1)\n",
                "Using Stream ID: 4294967296 (easy handle 0x1)\n", "Using Stream ID: -1 (easy handle 0x1)\n",
                " Using Stream ID: 1 (easy handle 0x1)\n", "using stream id: 1 (easy handle 0x1)\n",
                "[HTTP/3] [13] OPENED stream for https://localhost/\n", "[HTTP/2] [-1] OPENED stream for x\n",
                "[HTTP/2] [1] [:path: /]\n", "[HTTP/2] [1] received GOAWAY, error=0, last_stream=1\n",
                "received GOAWAY, error=0, last_stream=\n", "received GOAWAY, error=, last_stream=1\n",
                "received GOAWAY, error=0, last_stream=1 \n", "received GOAWAY, error=0, last_stream=1\n\n",
                "received GOAWAY, error=0, last_stream=1\r\n", "received GOAWAY, error=0, last_stream=99999999999\n",
                "h2h3 [:path: /received GOAWAY, error=0, last_stream=1]\n",
                "Connection died, retrying a fresh connect (retry count: 1)\n",
                "REFUSED_STREAM, retrying a fresh connect\n",
            ])
        func `all other log lines are ignored`(_ text: String) {
            #expect(remark(text) == nil)
        }
    }
#endif
