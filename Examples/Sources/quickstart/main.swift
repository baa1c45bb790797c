// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What the package does, as an app would use it: swift run --package-path Examples quickstart [folder]
//
// In App is what an app consists of, to be copied; in Server the service that it talks to, which is in this process; in
// Showing what makes it visible. Quickstart.swift is the story.

import Foundation
import OperationCore
import TerminalDisplay

// The first thread only waits, so that no signal finds it unprepared.
let interruption = Interruption()
TerminalSignals.listen(to: [SIGINT, SIGTERM]) { interruption.note($0) }

let folder =
    CommandLine.arguments.dropFirst().first.map { URL(filePath: $0) }
    ?? FileManager.default.temporaryDirectory.appendingPathComponent(
        "operationkit-quickstart-\(ProcessInfo.processInfo.userName)")
let program = Program(stage: Stage(folder: folder), interruption: interruption)
Task.detached { exit(await program.run()) }
while true { pause() }
