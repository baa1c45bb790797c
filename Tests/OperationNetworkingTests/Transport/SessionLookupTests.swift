// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Testing

    /// Names that take long to be looked up: in children, whose system asks a name server of ours that does not answer.
    @Suite(
        .timeLimit(.minutes(3)),
        .enabled(
            if: NetworkNamespace.withOwnResolver != nil, "There are no namespaces here, or no ip or mount command."))
    struct SessionLookupTests {
        private func probe(_ scenario: String) async throws -> String {
            try await #require(NetworkNamespace.withOwnResolver).probe("ResolverProbe", scenario)
        }

        @Test func `a look-up that is not answered holds up no other transfer`() async throws {
            #expect(try await probe("others") == "end")
        }

        @Test func `however many names there are, so many are looked up at a time`() async throws {
            #expect(try await probe("bounds") == "end")
        }

        @Test func `a look-up that takes too long ends by the time limit for a connection, which names the host`()
            async throws
        {
            #expect(try await probe("limits") == "end")
        }

        @Test func `a look-up that is not answered holds up neither a cancel nor the end of the session`() async throws
        {
            #expect(try await probe("ends") == "end")
        }
    }
#endif
