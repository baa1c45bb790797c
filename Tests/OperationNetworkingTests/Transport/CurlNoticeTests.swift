// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct CurlNoticeTests {
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
