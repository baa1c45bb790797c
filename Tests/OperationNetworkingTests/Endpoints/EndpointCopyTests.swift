// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(1)))
struct EndpointCopyTests {
    private let stub = StubSession()

    /// Returns the text of the body that an endpoint sends.
    private func sent(_ endpoint: Endpoint<String>) async throws -> String {
        let url = try #require(URL(string: "http://shop.example/"))
        return try await NetworkBase(url) { $0.session = stub }.operation(for: endpoint).run()
    }

    @Test func `a copy of an endpoint whose body is replaced does not change the body of the original`() async throws {
        stub.route("POST", "/albums") { .text($0.text) }
        @Sendable func body(_ text: String) -> RequestBody { .data(Data(text.utf8)) }
        var original = Endpoint<String>.post("albums", body: body("original"))
        var copy = original
        copy.makeBody = { _ in body("copy") }
        #expect(try await sent(original) == "original")
        #expect(try await sent(copy) == "copy")
        let second = copy
        // The closure is called for each request.
        let count = Locked(0)
        copy.makeBody = { _ in body("request \(count.next())") }
        original.makeBody = { _ in .none }
        for number in 1...2 { #expect(try await sent(copy) == "request \(number)") }
        #expect(try await sent(second) == "copy")
        #expect(try await sent(original) == "")
    }
}
