// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

/// Creates runs that a test ends explicitly, and counts the bodies that are active at the same time.
final class Runs: Sendable {
    private let windsDown: Bool
    private let made = Locked<[HandDriven]>([])
    private let phases = Locked<[ObjectIdentifier: Phase]>([:])
    /// The number of bodies that have begun and not ended.
    let active = Tally()
    private let census: LiveObjects?

    private enum Phase { case running, over }

    init(windsDown: Bool = false, census: LiveObjects? = nil) {
        self.windsDown = windsDown
        self.census = census
    }

    var all: [HandDriven] { made.withLock { $0 } }

    func make() -> HandDriven {
        let run = HandDriven(
            windsDown: windsDown,
            hooks: .init(
                main: { [self] run in
                    // Another thread may end the run just before its body begins.
                    phases.withLock { phases in
                        guard phases[ObjectIdentifier(run)] == nil else { return }
                        phases[ObjectIdentifier(run)] = .running
                        active.add()
                    }
                },
                cancel: { [self] run in if !windsDown { close(run) } }))
        census?.track(run)
        made.withLock { $0.append(run) }
        return run
    }

    /// Ends a run with a result or an error, or ends a canceled run that winds down.
    func conclude(_ run: HandDriven, with result: Result<Int, Flaw>) {
        close(run)
        run.finish(with: result)
    }

    func forget() {
        let runs = made.withLock { runs in
            defer { runs = [] }
            return runs
        }
        withExtendedLifetime(runs) {}
    }

    private func close(_ run: HandDriven) {
        phases.withLock { phases in
            if phases.updateValue(.over, forKey: ObjectIdentifier(run)) == .running { active.add(-1) }
        }
    }
}
