// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What the package does, as an app would use it: swift run --package-path Examples quickstart [folder]
//
// In App is what an app consists of, to be copied; in Server the service that it talks to, which is in this process; in
// Showing what makes it visible. Quickstart.swift is the story.

import Foundation
import OperationCore
import TerminalDisplay

let arguments = CommandLine.arguments.dropFirst()
if let option = arguments.first(where: { $0.hasPrefix("-") }) {
    let isQuestion = option == "--help" || option == "-h"
    print(isQuestion ? "Usage: quickstart [folder]" : "There is no option \(option). Usage: quickstart [folder]")
    exit(isQuestion ? EXIT_SUCCESS : 2)
}
let folder =
    arguments.first.map { URL(filePath: $0) }
    ?? FileManager.default.temporaryDirectory.appendingPathComponent(
        "operationkit-quickstart-\(ProcessInfo.processInfo.userName)")
let stage = Stage(folder: folder)
// The first thread only waits, so that no signal finds it unprepared.
let interruption = TerminalInterruption(of: stage)
interruption.listen()
let program = Program(stage: stage, interruption: interruption)
Task.detached {
    let code = await program.run()
    // By the signal itself, so that a shell's loop around it ends, too.
    if code > 128 { TerminalSignals.endProcess(by: code - 128) }
    exit(code)
}
while true { pause() }
