// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import TerminalDisplay
import Testing

@testable import quickstart

/// How the quickstart ends where its story does not go as it should.
@Suite(.timeLimit(.minutes(1)))
struct ProgramEndTests {
    private struct Flaw: Error {}

    @Test func `a story that breaks off leaves nothing suspended behind`() async {
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
