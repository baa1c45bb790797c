// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationExporters
import OperationNetworking
import TerminalDisplay

/// The program from its start to its exit code.
struct Program: Sendable {
    let stage: Stage
    let interruption: TerminalInterruption
    /// A closure that replaces the demonstration, for tests of the exit code.
    var other: (@Sendable (QueueManager) async throws -> Void)?

    /// Runs the demonstration and returns the exit code.
    func run() async -> Int32 {
        let queue = QueueManager("quickstart", width: 6)
        queue.recording = QueueRecording()
        let story = Task {
            if let other { try await other(queue) } else { try await tell(with: queue) }
        }
        interruption.stop { _ in
            story.cancel()
            queue.cancelAll(because: .requested("the program was interrupted"))
        }
        let end = await story.result
        // An operation that a failed demonstration left suspended would never end.
        if case .failure = end { queue.cancelAll(because: .requested("the quickstart failed")) }
        await queue.drained()
        defer { stage.finish() }
        switch end {
        // A signal after the end of the demonstration has no effect.
        case .success:
            stage.tell("All steps succeeded.", .good)
            return EXIT_SUCCESS
        case .failure(let error):
            if let signal = interruption.signal {
                stage.tell("Interrupted: all running operations were canceled.", .bad)
                return 128 + signal
            }
            stage.tell("A step failed: \(error)", .bad)
            return EXIT_FAILURE
        }
    }

    private func tell(with queue: QueueManager) async throws {
        try FileManager.default.createDirectory(at: stage.folder, withIntermediateDirectories: true)
        let server = try AlbumServer()
        stage.tell("An album service runs in this process at \(server.url.absoluteString)", .faint)
        let trace = NetworkTrace()
        try await Quickstart(server: server, stage: stage, queue: queue, trace: trace).run()
        await server.stop()
        await queue.drained()
        try write(trace, queue.record)
    }

    /// Writes the trace and the picture of the run, and prints how to open them.
    private func write(_ trace: NetworkTrace, _ record: QueueRecord) throws {
        let timeline = stage.folder.appendingPathComponent("trace.json")
        let picture = stage.folder.appendingPathComponent("picture.svg")
        try trace.chromeTrace(with: record).write(to: timeline, options: .atomic)
        let svg = RunPicture(of: record, title: "Quickstart: what ran when").svg
        try Data(svg.utf8).write(to: picture, options: .atomic)
        stage.tell("Timeline of the run:")
        stage.tell("   \(picture.path)")
        stage.tell("   a picture: open it in a browser", .faint)
        stage.tell("   \(timeline.path)")
        stage.tell("   a trace with the times of each attempt: open it in https://ui.perfetto.dev", .faint)
    }
}
