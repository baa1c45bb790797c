// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// Shows what the package does in an app: swift run --package-path Examples quickstart [folder]
//
// App contains the code of an app, which you can copy. Server contains the service, which runs in this process. Showing
// contains the output. Quickstart.swift contains the demonstration.

import Foundation
import OperationCore
import TerminalDisplay

let arguments = CommandLine.arguments.dropFirst()
if let option = arguments.first(where: { $0.hasPrefix("-") }) {
    let isQuestion = option == "--help" || option == "-h"
    let help = """
        Usage: quickstart [folder] - shows how an app sends requests to a local server.
        The folder receives a picture and a trace of the run. The default is temporary.
        Exit status: 0 if all steps succeed, 1 otherwise, 2 for a bad option.
        """
    print(isQuestion ? help : "There is no option \(option). Usage: quickstart [folder]")
    exit(isQuestion ? EXIT_SUCCESS : 2)
}
let folder =
    arguments.first.map { URL(filePath: $0) }
    ?? FileManager.default.temporaryDirectory.appendingPathComponent(
        "operationkit-quickstart-\(ProcessInfo.processInfo.userName)")
let stage = Stage(folder: folder)
// The first thread only waits, so that all later threads block the signals.
let interruption = TerminalInterruption(of: stage)
interruption.listen()
let program = Program(stage: stage, interruption: interruption)
Task.detached {
    let code = await program.run()
    // The program ends with the signal, so that a loop in the shell also ends.
    if code > 128 { TerminalSignals.endProcess(by: code - 128) }
    exit(code)
}
while true { pause() }
