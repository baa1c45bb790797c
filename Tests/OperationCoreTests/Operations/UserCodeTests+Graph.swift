// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

// User code that is called for dependencies and time.
extension UserCodeTests {
    @Test func `input closures and fail closures are called without a lock held`() throws {
        try expectFree { operation, probe in
            let upstream = HandDriven()
            try operation.receive(from: upstream, otherwise: .cancel) { _, _ in probe.ask() }
            upstream.startAndFinish(withResult: 1)
            operation.start()
        }
        try expectFree { operation, probe in
            let upstream = HandDriven()
            try operation.depend(
                on: upstream,
                otherwise: .fail { _ in
                    probe.ask()
                    return .first
                })
            upstream.start()
            upstream.finish(withError: .second)
        }
    }

    @Test func `a removed dependency is released without a lock held`() throws {
        try expectFree { operation, probe in
            var upstream: HandDriven? = HandDriven()
            try upstream.map { upstream in
                upstream.completionBlock = { [word = LastWord { probe.ask() }] in withExtendedLifetime(word) {} }
                try operation.depend(on: upstream, otherwise: .runAnyway)
            }
            weak let weakly = upstream
            upstream = nil
            if let upstream = weakly { operation.removeDependency(upstream) }
        }
    }

    @Test func `the rules of removed dependencies are released without a lock held`() throws {
        try expectFree { upstream, probe in
            let dependents = (0..<4).map { _ in HandDriven() }
            for dependent in dependents {
                let rule: DependencyRule<Flaw> = .fail { [word = LastWord { probe.ask() }] _ in
                    withExtendedLifetime(word) { .first }
                }
                try dependent.depend(on: upstream, otherwise: rule)
            }
            for dependent in dependents { dependent.removeDependency(upstream) }
        }
    }

    @Test func `an overridden name is read without a lock held`() throws {
        final class Named: AsyncOperation<Int, Flaw>, @unchecked Sendable {
            let ask: @Sendable () -> Void
            init(_ ask: @escaping @Sendable () -> Void) { self.ask = ask }
            override func main() {}
            override var name: String? {
                get {
                    ask()
                    return "Named"
                }
                set {}
            }
        }
        try expectFree { operation, probe in
            let named = Named { probe.ask() }
            try named.depend(on: operation, otherwise: .runAnyway)
            #expect(throws: OperationSetupError.self) { try operation.depend(on: named, otherwise: .runAnyway) }
        }
    }

    @Test func `the clock is called without a lock held`() {
        expectFree { operation, probe in
            let clock = HookClock()
            clock.beforeNextSchedule { probe.ask() }
            operation.clock = clock
            operation.deadline = OperationInstant(offset: .seconds(1))
        }
        expectFree { operation, probe in
            let clock = HookClock()
            operation.clock = clock
            operation.deadline = OperationInstant(offset: .seconds(1))
            clock.beforeNextTimerCancel { probe.ask() }
            operation.deadline = nil
        }
        expectFree { operation, probe in
            let clock = HookClock()
            operation.setTimeout(.seconds(1), on: clock)
            clock.beforeNextNow { probe.ask() }
            operation.start()
        }
    }
}
