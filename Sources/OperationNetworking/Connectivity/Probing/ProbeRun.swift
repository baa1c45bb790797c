// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Sends the probes of one monitor, and writes on its board what comes of them: the shell of ``ProbeMachine``.
final class ProbeRun: Sendable {
    private struct State {
        var machine = ProbeMachine()
        /// The probe that is under way, and its limit or the pause before the next one.
        var task: (any NetworkTask)?
        var timer: (any OperationTimer)?

        mutating func takeAll() -> ((any NetworkTask)?, (any OperationTimer)?) { (task.take(), timer.take()) }
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

    func askNow() { perform(state.withLock { $0.machine.askNow() }) }

    func rest() {
        let (task, timer) = state.withLock { state in
            state.machine.rest()
            return state.takeAll()
        }
        task?.cancel()
        timer?.cancel()
        board.write(.unknown)
    }

    func end() {
        let (task, timer) = state.withLock { state in
            state.machine.end()
            return state.takeAll()
        }
        task?.cancel()
        timer?.cancel()
    }

    private func perform(_ action: ProbeMachine.Action) {
        let old = state.withLock { $0.takeAll() }
        old.1?.cancel()
        switch action {
        case .none: break
        case .ask(let number): ask(number)
        case .wait(let pause, let number):
            keep(clock.schedule(after: pause) { [weak self] in self?.waited(number) }, number)
        }
    }

    private func waited(_ number: Int) { perform(state.withLock { $0.machine.waited(number) }) }

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
            state.task = task
            return true
        }
        guard isPresent else { return task.cancel() }
        keep(clock.schedule(after: probe.timeout) { task.cancel() }, number)
        task.resume()
    }

    private func keep(_ timer: any OperationTimer, _ number: Int) {
        let isPresent = state.withLock { state in
            guard state.machine.isPresent(number) else { return false }
            state.timer = timer
            return true
        }
        if !isPresent { timer.cancel() }
    }

    /// Each probe ends once.
    private func ended(_ number: Int, _ result: ProbeMachine.Result) {
        // The chance is the user's, and so asked for outside the lock.
        let chance = probe.chance()
        let verdict = state.withLock { $0.machine.ended(number, result, of: probe, chance: chance) }
        guard let (connectivity, action) = verdict else { return }
        perform(action)
        board.write(connectivity)
    }
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

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        end.withLock { $0.take() }?(.failure)
    }
}
