// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

/// Makes runs that a test ends by hand, and counts how many bodies there are at a time.
final class Runs: Sendable {
    private let windsDown: Bool
    private let made = Locked<[HandDriven]>([])
    private let phases = Locked<[ObjectIdentifier: Phase]>([:])
    /// Bodies that were begun and have not ended: its peak is how many there were at once.
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
                    // Another thread may end it just before its body is entered.
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

    /// Ends a run, by a result or an error, or after its cancellation.
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
