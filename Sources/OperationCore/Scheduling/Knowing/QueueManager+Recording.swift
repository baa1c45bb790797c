// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension QueueManager {
    /// Whether and how what runs when is written down; nil, as from the start, for not at all.
    ///
    /// Setting it begins anew. Set to nil, what was recorded so far stays readable.
    public var recording: QueueRecording? {
        get { engine.recording.recorder?.knobs }
        set { engine.setRecording(newValue) }
    }

    /// What ran when since the recording was switched on; empty if it never was.
    public var record: QueueRecord {
        engine.recording.lastRecorder?.record(of: name) ?? QueueRecord(queue: name, runs: [])
    }
}
