// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Sends the probes of one monitor, and writes on its board what comes of them: the shell of ``ProbeMachine``.
final class ProbeRun: Sendable {
    private struct State {
        var machine = ProbeMachine()
        /// What is under way.
        var work = Work()
    }

    /// A probe and its limit, or the pause before the next one.
    private struct Work {
        var task: (any NetworkTask)?
        var timer: (any OperationTimer)?

        func cancel() {
            task?.cancel()
            timer?.cancel()
        }
    }

    private let probe: NetworkProbe
    private let session: any NetworkSession
    private let clock: any OperationClock
    private let board: ConnectivityBoard
    private let state = Locked(State())

    init(_ probe: NetworkProbe, _ session: any NetworkSession, _ clock: any OperationClock, _ board: ConnectivityBoard)
    {
        (self.probe, self.session, self.clock, self.board) = (probe, session, clock, board)
    }

    func askNow() {
        let now = clock.now
        apply { $0.askNow(now) }
    }

    func askSoon() {
        let (now, chance) = (clock.now, probe.chance())
        apply { $0.askSoon(now, chance: chance) }
    }

    func lookAgain() {
        let (now, chance) = (clock.now, probe.chance())
        apply { $0.lookAgain(now, chance: chance) }
    }

    /// What is known in this moment.
    var known: Connectivity { state.withLock { $0.machine.known } }

    func rest() {
        take { $0.rest() }.cancel()
        write()
    }

    func end() { take { $0.end() }.cancel() }

    /// Applies an event after which nothing is under way any more.
    private func take(_ event: (inout ProbeMachine) -> Void) -> Work {
        state.withLock { state in
            event(&state.machine)
            return exchange(&state.work, with: Work())
        }
    }

    /// Applies an event, and does what follows; what was under way goes if something follows, and stays if not.
    private func apply(_ event: (inout ProbeMachine) -> ProbeMachine.Action) {
        let (action, old) = state.withLock { state in
            let action = event(&state.machine)
            return (action, action == .none ? Work() : exchange(&state.work, with: Work()))
        }
        old.cancel()
        write()
        switch action {
        case .none: break
        case .ask(let number): ask(number)
        case .wait(let pause, let number):
            keep(clock.schedule(after: pause) { [weak self] in self?.waited(number) }, number)
        }
    }

    private func waited(_ number: Int) {
        let now = clock.now
        apply { $0.waited(number, now) }
    }

    private func ask(_ number: Int) {
        let request: NetworkRequest
        do throws(NetworkError) {
            request = try NetworkRequest(probe.method, url: probe.url)
        } catch {
            // Nothing can be asked so, and nobody knows.
            return ended(number, .answer(.unclear))
        }
        let receiver = ProbeReceiver(probe.judge) { [weak self] result in self?.ended(number, result) }
        let task = session.makeTask(with: request, receiver: receiver)
        let isPresent = state.withLock { state in
            guard state.machine.isPresent(number) else { return false }
            state.work.task = task
            return true
        }
        guard isPresent else { return task.cancel() }
        // What ends the probe cancels its task.
        keep(clock.schedule(after: probe.timeout) { [weak self] in self?.ended(number, .silence) }, number)
        task.resume()
    }

    private func keep(_ timer: any OperationTimer, _ number: Int) {
        let isPresent = state.withLock { state in
            guard state.machine.isPresent(number) else { return false }
            state.work.timer = timer
            return true
        }
        if !isPresent { timer.cancel() }
    }

    /// Each probe ends once.
    private func ended(_ number: Int, _ result: ProbeMachine.Result) {
        // The chance is the user's, and so asked for outside the lock.
        let chance = probe.chance()
        apply { $0.ended(number, result, of: probe, chance: chance) ?? .none }
    }

    /// Writes the known state to the board.
    ///
    /// Several threads may do so at the same time.
    private func write() { applyLatest({ known }) { board.write($0) } }
}

/// Hears of one probe: its head is all that counts.
private final class ProbeReceiver: NetworkReceiver {
    private let judge: @Sendable (ResponseHead) -> NetworkProbe.Verdict
    private let end: Locked<(@Sendable (ProbeMachine.Result) -> Void)?>

    init(
        _ judge: @escaping @Sendable (ResponseHead) -> NetworkProbe.Verdict,
        _ end: @escaping @Sendable (ProbeMachine.Result) -> Void
    ) {
        self.judge = judge
        self.end = Locked(end)
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        let verdict = judge(head)
        end.withLock { $0.take() }?(.answer(verdict))
        task.cancel()
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}

    /// Only what may come of a network that is gone says something about it: no certificate does, nor a proxy, nor a
    /// process that has no more files to open.
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        let isSilence = OfflineRule.standard.contains { $0.code == error?.code }
        end.withLock { $0.take() }?(isSilence ? .silence : .nothing)
    }
}
