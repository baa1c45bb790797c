// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Testing

@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueNameTests {
    @Test func `a queue is defined once and found by its name`() throws {
        let name = "names: images"
        let queue = try QueueManager.define(name, width: 4)
        #expect(try QueueManager.named(name) === queue)
        #expect(try QueueManager.named("names: images") === queue)
        #expect(queue.width == 4)
        #expect(queue.name == "names: images")
        #expect(QueueManager.definedNames.contains(name))
        #expect { try QueueManager.define(name) } throws: { ($0 as? QueueError)?.code == .name }
        #expect(QueueManager.undefine(name) === queue)
        #expect(QueueManager.undefine(name) == nil)
    }

    @Test func `an unknown queue name throws an error that lists the defined names`() throws {
        try QueueManager.define("names: known")
        defer { QueueManager.undefine("names: known") }
        #expect { try QueueManager.named("names: unknown") } throws: { error in
            guard let error = error as? QueueError else { return false }
            return error.code == .name && error.message.contains("names: unknown")
                && error.message.contains("names: known")
        }
    }
}
