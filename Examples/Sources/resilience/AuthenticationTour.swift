// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit

/// Requests with an expired token, which wait until the token is refreshed.
struct AuthenticationTour {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer()
        server.route("GET", "/album") { request in
            request["Authorization"] == "Bearer new" ? .json(#"{"title":"Kind of Blue"}"#) : .status(401)
        }
        server.route("POST", "/token") { _ in .json(#"{"access":"new"}"#).after(.milliseconds(300)) }
        server.route("POST", "/broken") { _ in .status(400).after(.milliseconds(50)) }
    }

    func run() async throws {
        print("== Authentication")
        try await renewsOnce()
        await failsTogether()
        try await byHand()
    }

    /// The configuration of requests without a token.
    private var plain: NetworkBase {
        var base = NetworkBase(server.url("/"))
        base.callbackQueue = DispatchQueue(label: "resilience")
        return base
    }

    /// Returns an authenticator that prints its events and has an expired token.
    private func authenticator(
        _ name: String, refresh: (@Sendable (String?) async throws -> String)?
    ) -> Authenticator<String> {
        var options = AuthenticationOptions()
        options.name = name
        options.eventHandler = { print("  \($0)") }
        return Authenticator(
            "old", options: options,
            apply: { token, request in
                try request.with("Authorization", "Bearer \(token)")
            }, refresh: refresh)
    }

    private func albums(_ count: Int, _ authenticator: Authenticator<String>) -> [EndpointOperation<[String: String]>] {
        var base = plain
        base.authenticate(by: authenticator)
        return (0..<count).map { number in
            let operation = base.get("album", as: [String: String].self)
            operation.name = "album \(number)"
            return operation
        }
    }

    /// Returns the number of requests to a path after the first `count` requests.
    private func hits(_ path: String, since count: Int) -> Int {
        server.requests.dropFirst(count).count { $0.path == path }
    }

    private func renewsOnce() async throws {
        print("Forty requests, one every 10 ms, with an expired token")
        let plain = plain, before = server.requests.count
        let authenticator = authenticator("shop") { old in
            let answer = try await plain.send(["token": old], to: "token", as: [String: String].self).run()
            return answer["access"] ?? ""
        }
        let operations = albums(40, authenticator)
        for operation in operations {
            operation.start()
            try await Task.sleep(for: .milliseconds(10))
        }
        for operation in operations { _ = try await operation.value }
        let (sent, refreshes) = (hits("/album", since: before), hits("/token", since: before))
        print("  40 successes, \(refreshes) refresh, \(sent) other requests")
        expect(refreshes == 1)
        // Requests that were sent before the first 401 response arrived are sent twice.
        expect(sent >= 41 && sent <= 80)
    }

    private func failsTogether() async {
        print("One hundred requests and a refresh that fails")
        let plain = plain, before = server.requests.count
        let authenticator = authenticator("broken shop") { old in
            let answer = try await plain.send(["token": old], to: "broken", as: [String: String].self).run()
            return answer["access"] ?? ""
        }
        let operations = albums(100, authenticator)
        for operation in operations { operation.start() }
        var codes: Set<NetworkError.Code> = []
        for operation in operations {
            if let code = await operation.finalOutcome.error?.code { codes.insert(code) }
        }
        let error = await albums(1, authenticator)[0].begunOutcome.error
        print("  another request fails without a new refresh: \(error?.description ?? "it did not fail")")
        expect(codes == [.refreshFailed] && error?.code == .refreshFailed)
        expect(hits("/broken", since: before) == 1 && authenticator.postponed.isEmpty)
    }

    private func byHand() async throws {
        print("A token that the program sets: waiting operations can be listed, run, failed and resumed")
        let authenticator = authenticator("sign-in", refresh: nil)
        let operations = albums(4, authenticator)
        for (index, operation) in operations.enumerated() {
            operation.start()
            while authenticator.postponed.count <= index { try await Task.sleep(for: .milliseconds(1)) }
        }
        print("  waiting: \(authenticator.postponed.compactMap(\.name))")
        expect(authenticator.run(operations[2]) { try $0.with("Authorization", "Bearer new") })
        _ = try await operations[2].value
        print("  album 2 was run with its own token")
        expect(authenticator.fail(operations[0]))
        let error = await operations[0].finalOutcome.error
        print("  album 0 failed: \(error?.code.description ?? "it did not fail")")
        authenticator.set("new")
        for index in [1, 3] { _ = try await operations[index].value }
        expect(error?.code == .refreshFailed && authenticator.postponed.isEmpty)
    }
}
