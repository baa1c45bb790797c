// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import TerminalDisplay
import Testing

@testable import quickstart

/// Tests the end of the quickstart after a failure.
@Suite(.timeLimit(.minutes(1)))
struct ProgramEndTests {
    private struct Flaw: Error {}

    @Test func `a program that fails leaves no suspended operation behind`() async {
        let stage = Stage(folder: FileManager.default.temporaryDirectory)
        var program = Program(stage: stage, interruption: TerminalInterruption(of: stage))
        program.other = { queue in
            let operation = TaskOperation<Void, Never> { for await _ in AsyncStream<Void>.makeStream().stream {} }
            try queue.add(operation)
            operation.suspend()
            throw Flaw()
        }
        #expect(await program.run() == EXIT_FAILURE)
    }
}
