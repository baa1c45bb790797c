// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Runs the conformance cases that also apply with an nginx between session and server.
    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct FrontedConformanceTests {
        /// Cases that nginx itself affects: interim responses, trailers, the order of headers, unknown hosts, and
        /// everything about the connection itself.
        fileprivate static let excepted: Set<String> = [
            "trailers after a chunked body are delivered separately from the headers",
            "a folded header line continues the previous line",
            "repeated headers stay separate and in order", "an HTTP/1.0 response is accepted",
            "the reason phrase of a status line is delivered",
            "an informational response is delivered separately",
            "several informational responses are delivered separately",
            "a response that arrives byte by byte is delivered completely",
            "metrics report bytes, times, version and connection reuse",
            "the method TRACE is sent", "the target /%00 is sent unchanged",
            "the Host header contains the host and port of the URL",
            "an IPv6 address is sent in the Host header",
            "a request to a closed port fails with cannotConnect and sends nothing",
            "errors describe the request without its secrets",
            "headers are sent in order, including repeated headers",
            "a body with expectsContinue waits for 100 Continue",
            "the body is not sent if the server refuses instead of sending 100 Continue",
            "a connection that the server resets during the upload fails with connectionLost",
            "a connection that the server never accepts exceeds the connect limit",
            // The servers of these cases start with an interim response.
            "canceling a suspended task ends it", "a receiver can cancel its task when informational headers arrive",
            "a receiver can cancel its task when headers arrive",
            "a receiver can cancel its task when body bytes arrive",
        ]

        private static let cases = ConformanceCase.passingOn.filter { !excepted.contains($0.name) }

        @Test(arguments: Rounds.isSoak ? Wire.allCases : [.secure, .http2], cases)
        func `the session passes the conformance cases through nginx`(
            _ wire: Wire, _ conformanceCase: ConformanceCase
        ) async throws {
            let front = ServerFront(server: try await NginxServer.shared.value, wire: wire)
            try await conformanceCase.run { options in try Bench(.curl, options, through: front) }
        }

        @Test func `every excluded name is the name of a case`() {
            #expect(Self.excepted.isSubset(of: ConformanceCase.passingOn.map(\.name)))
        }
    }

    extension ConformanceCase {
        /// The cases that are not about damaged responses and connections.
        ///
        /// Outside the soak, only cases with bodies.
        fileprivate static let passingOn =
            rightResponses + bodies + cancelling + brakes + (Rounds.isSoak ? givenAsTheyAre : [])
            + (requests + times).filter { Rounds.isSoak || FrontedConformanceTests.excepted.contains($0.name) }
    }
#endif
