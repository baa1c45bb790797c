// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit

/// A real server that accepts one token, and an authenticator whose refreshes the test controls.
final class TokenBench: Sendable {
    let bench: OperationBench
    /// The token that the server accepts.
    let good = Shared("new")
    /// The tokens that the refreshes replaced.
    let asked = EventRecorder<String>()
    let events = EventRecorder<AuthenticationEvent>()
    let clock = ManualClock()

    init() throws {
        bench = try OperationBench()
        serve { _ in .status(401) }
    }

    var server: LoopbackServer { bench.server }

    /// Sends a text to requests with the valid token, and the given response to others.
    func serve(_ path: String = "/", others answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) {
        server.route("GET", path) { [good] request in
            request["Authorization"] == "Bearer " + good.value ? .text("Hello") : answer(request)
        }
    }

    /// Creates an authenticator with an old token.
    ///
    /// By default, its refresh returns the valid token.
    func authenticator(
        _ token: String? = "old", lifetime: @escaping @Sendable (String) -> Duration? = { _ in nil },
        change: (inout AuthenticationOptions) -> Void = { _ in },
        refresh: (@Sendable () async throws -> String)? = nil
    ) -> Authenticator<String> {
        var options = AuthenticationOptions()
        options.clock = clock
        options.pace = .atOnce
        options.eventHandler = { [events] in events.record($0) }
        change(&options)
        return Authenticator(token, options: options, lifetime: lifetime) { token, request in
            try request.with("Authorization", "Bearer \(token)")
        } refresh: { [asked, good] old in
            asked.record(old ?? "none")
            return try await refresh?() ?? good.value
        }
    }

    /// Creates an authenticator whose refreshes end when one operation waits.
    ///
    /// A refresh begins before that.
    func authenticatorForOneThatWaits(
        _ refresh: (@Sendable () async throws -> String)? = nil
    ) -> Authenticator<String> {
        let itself = Shared<Authenticator<String>?>(nil)
        let authenticator = authenticator(refresh: { [good] in
            await until { itself.value?.postponedCount == 1 }
            return try await refresh?() ?? good.value
        })
        itself.value = authenticator
        return authenticator
    }

    func operation(_ authenticator: Authenticator<String>, _ target: String = "/") -> NetworkDataOperation<String> {
        let operation = bench.text(target)
        operation.clock = clock
        operation.authenticate(by: authenticator)
        return operation
    }

    func operations(_ count: Int, _ authenticator: Authenticator<String>) -> [NetworkDataOperation<String>] {
        (0..<count).map { _ in operation(authenticator) }
    }
}

extension Gate {
    /// A refresh that waits at the gate, and then returns the token.
    func opening(_ token: String) -> @Sendable () async throws -> String {
        {
            await self.passage()
            return token
        }
    }
}

/// Waits until the condition is true, or until the time limit of the test.
func until(_ isTrue: @Sendable () -> Bool) async {
    while !isTrue(), !Task.isCancelled { await Task.yield() }
}

/// A value that several threads read and change.
final class Shared<Value: Sendable>: Sendable {
    private let state: Locked<Value>

    init(_ value: Value) { state = Locked(value) }

    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    /// Returns the value, and forgets it.
    func take<Wrapped>() -> Wrapped? where Value == Wrapped? { state.withLock { exchange(&$0, with: nil) } }
}

struct Refusal: Error, Equatable {}
