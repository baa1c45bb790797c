// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// Whether what a queue does is recorded: a look at one atomic where it is not.
final class RecordingSwitch: Sendable {
    private let isOn = Atomic(false)
    private let present = Locked<QueueRecorder?>(nil)

    /// The recorder that is at work.
    var recorder: QueueRecorder? {
        guard isOn.load(ordering: .relaxed) else { return nil }
        return present.withLock { $0 }
    }

    /// The recorder that is at work, or the last one that was.
    var lastRecorder: QueueRecorder? { present.withLock { $0 } }

    var isRecording: Bool { isOn.load(ordering: .relaxed) }

    /// The present moment for what is recorded next; asked for outside the queue's lock, since the clock is the user's.
    var moment: RecordedMoment? { recorder.map { RecordedMoment(recorder: $0, moment: $0.clock.now) } }

    func start(_ recorder: QueueRecorder) -> QueueRecorder? {
        let old = present.withLock { exchange(&$0, with: recorder) }
        isOn.store(true, ordering: .relaxed)
        return old
    }

    func stop() { isOn.store(false, ordering: .relaxed) }
}

/// A moment on its way to the recorder.
struct RecordedMoment {
    let recorder: QueueRecorder
    let moment: OperationInstant

    /// Under the queue's lock: what is recorded from now on happened at that moment.
    func pass() { recorder.pass(to: moment) }
}

/// Where an operation stands whose handler is about to be called.
struct RecordedPlace {
    let engine: QueueEngine
    let slot: QueueMachine.Slot

    func stamp() -> HandlerStamp? { engine.recording.recorder?.stamp(slot) }
}

/// Notes when the handler of an operation began.
struct HandlerStamp: Sendable {
    let recorder: QueueRecorder
    let number: Int

    func handlerBegins() { recorder.handlerBegins(number) }
}

extension ManagedOperation.Core {
    /// The place in the queue, if what that does is recorded.
    var recordedPlace: RecordedPlace? {
        guard let host, slot >= 0, host.recording.isRecording else { return nil }
        return RecordedPlace(engine: host, slot: slot)
    }
}

extension QueueEngine {
    /// Notes what an operation waited for, just before it begins: afterwards nobody knows.
    func recordLinks(of operation: Operation) {
        guard let recorder = recording.recorder else { return }
        recorder.link(operation, to: operation.dependencies.map(\.behindGate))
    }

    func setRecording(_ knobs: QueueRecording?) {
        let recorder = knobs.map { QueueRecorder($0) }
        let now = recorder?.clock.now
        var old: QueueRecorder?
        var stopped: QueueRecorder?
        let calls = applySettled { state, _ -> [@Sendable () -> Void] in
            stopped = recording.recorder
            let calls = stopped.map { state.machine.remove($0) } ?? []
            guard let recorder, let now else {
                recording.stop()
                return calls
            }
            recorder.pass(to: now)
            for (index, entry) in state.machine.entries.enumerated() where entry.stage != .free {
                recorder.enter(QueueMachine.Slot(index), entry)
            }
            old = recording.start(recorder)
            state.machine.add(recorder)
            return calls
        }
        for call in calls { call() }
        stopped?.close()
        withExtendedLifetime(old) {}
    }
}
