// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// The cases of the conformance suite that mean the same with an nginx between session and server.
    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct FrontedConformanceTests {
        /// What nginx has a mind of its own about: interim responses, trailers, the order of fields, hosts it is not, and
        /// everything that is about the connection itself.
        fileprivate static let excepted: Set<String> = [
            "trailers after chunks are told apart and do no harm", "a folded line goes on with the last",
            "fields of one name stay apart and in order", "HTTP/1.0 is understood",
            "the words of a status line are kept",
            "one informational head comes apart", "several informational heads come apart",
            "a response that comes byte by byte is the same", "metrics come once, before the end, and say what was",
            "the method TRACE is sent", "the target /%00 is sent as it is",
            "the host is that of the URL, with its port",
            "an address of IPv6 is a host", "where nobody listens, the connection is refused and nothing was sent",
            "errors name the request without its secrets",
            "header fields are sent in their order, with those that occur twice",
            "a body waits for 100 Continue if it is told to",
            "a refusal in the place of 100 Continue keeps the body back",
            "a server that breaks off in the middle of the body is an error",
            "a connection that is never taken exceeds a limit",
            // Their servers begin with an interim response.
            "a task is cancelled while it is suspended", "a task may be cancelled from its informational head",
            "a task may be cancelled from its head", "a task may be cancelled from its bytes",
        ]

        private static let cases = ConformanceCase.passingOn.filter { !excepted.contains($0.name) }

        @Test(arguments: Rounds.isSoak ? Wire.allCases : [.http2], cases)
        func `every session does what it should through a real server`(
            _ wire: Wire, _ conformanceCase: ConformanceCase
        ) async throws {
            let front = ServerFront(server: try await NginxServer.shared.value, wire: wire)
            try await conformanceCase.run { options in try Bench(.curl, options, through: front) }
        }

        @Test func `whatever is excepted is a case`() {
            #expect(Self.excepted.isSubset(of: ConformanceCase.passingOn.map(\.name)))
        }
    }

    extension ConformanceCase {
        /// The cases that are not about damaged responses and connections; without the soak, those that move bodies.
        fileprivate static let passingOn =
            rightResponses + bodies + cancelling + brakes + (Rounds.isSoak ? givenAsTheyAre : [])
            + (requests + times).filter { Rounds.isSoak || FrontedConformanceTests.excepted.contains($0.name) }
    }
#endif
