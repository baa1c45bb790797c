// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests authentication and offline policies that the operations of a group inherit.
@Suite("Inheritance in groups: authentication and offline policies", .timeLimit(.minutes(2)))
struct GroupCredentialTests {
    @Test func `a hundred children of nested groups with an expired token cause one refresh`() async throws {
        let tokens = try TokenBench()
        let authenticator = tokens.authenticator()
        let inner = (0..<10).map { _ in
            GroupOperation.all((0..<10).map { _ in tokens.bench.text() })
        }
        let outer = GroupOperation { group in try await group.run(GroupOperation.all(inner)).flatMap { $0 } }
        outer.authenticate(by: authenticator)
        #expect(try await outer.run() == Array(repeating: "Hello", count: 100))
        await outer.ended()
        #expect(tokens.asked.events == ["old"] && authenticator.postponedCount == 0)
        try await tokens.bench.checkNothingIsLeft()
    }

    @Test
    func `operations and groups that have their own realms, or none, do not inherit the credential`() async throws {
        let tokens = try TokenBench()
        let (outerRealm, ownRealm) = (tokens.authenticator("new"), tokens.authenticator("own"))
        let (own, none) = (tokens.bench.text("/own"), tokens.bench.text("/none"))
        let (beneath, inherited) = (tokens.bench.text("/beneath"), tokens.bench.text("/inherited"))
        tokens.server.route("/*") { .text($0["Authorization"] ?? "nothing") }
        own.authenticate(by: ownRealm)
        none.realms = []
        let inner = GroupOperation.all([beneath])
        inner.realms = []
        let outer = GroupOperation { group in
            [
                try await group.run(own), try await group.run(none), try await group.run(inner)[0],
                try await group.run(inherited),
            ]
        }
        outer.authenticate(by: outerRealm)
        #expect(outer.realms.count == 1 && inner.realms.isEmpty)
        #expect(try await outer.run() == ["Bearer own", "nothing", "nothing", "Bearer new"])
    }

    @Test func `a group that is created within a refresh does not wait for the refresh`() async throws {
        let tokens = try TokenBench()
        let bench = tokens.bench
        tokens.server.route("POST", "/token") { .text($0["Authorization"] == nil ? "new" : "with a token") }
        let itself = Shared<Authenticator<String>?>(nil)
        let authenticator = tokens.authenticator(refresh: {
            let group = GroupOperation.all([bench.upload("/token", body: .none)])
            if let authenticator = itself.value { group.authenticate(by: authenticator) }
            return try await group.run()[0]
        })
        itself.value = authenticator
        #expect(try await tokens.operation(authenticator).run() == "Hello")
        #expect(tokens.asked.events == ["old"])
        itself.value = nil
    }

    @Test func `children of a group inherit its offline policy`() async throws {
        let offline = try OfflineBench()
        let (waiting, own) = (offline.bench.text("/"), offline.bench.text("/"))
        own.offline = nil
        let group = GroupOperation.all([waiting, own])
        group.offline = offline.policy()
        group.start()
        #expect(try await own.value.hasPrefix("Hello"))
        await offline.waits(waiting)
        #expect(group.offline != nil && offline.bench.server.counts.heads == 1)
        offline.comeBack()
        #expect(try await group.value.count == 2)
        await group.ended()
        #expect(offline.offlineWaiting.waitingCount == 0 && offline.clock.pendingCount == 0)
    }
}
