// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Testing

    /// Tests slow name lookups in child processes whose system uses a name server of the tests that does not reply.
    @Suite(
        .timeLimit(.minutes(3)),
        .enabled(
            if: NetworkNamespace.withOwnResolver != nil, "Requires namespaces and the ip and mount commands."))
    struct SessionLookupTests {
        private func probe(_ scenario: String) async throws -> String {
            try await #require(NetworkNamespace.withOwnResolver).probe("ResolverProbe", scenario)
        }

        @Test func `a name lookup without a reply does not delay other transfers`() async throws {
            #expect(try await probe("others") == "end")
        }

        @Test func `the number of concurrent name lookups is limited`() async throws {
            #expect(try await probe("bounds") == "end")
        }

        @Test func `a slow name lookup exceeds the connect limit, and the error names the host`()
            async throws
        {
            #expect(try await probe("limits") == "end")
        }

        @Test func `a name lookup without a reply delays neither canceling nor closing the session`() async throws {
            #expect(try await probe("ends") == "end")
        }
    }
#endif
