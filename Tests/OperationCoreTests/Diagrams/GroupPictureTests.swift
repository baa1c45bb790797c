// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationExporters
import OperationTestKit
import Testing

@Suite("Groups in pictures and explanations", .nothingStaysAlive, .timeLimit(.minutes(3)))
struct GroupPictureTests {
    /// A group in a group with three children.
    ///
    /// One child runs, one waits for the width of its group, and one depends on the first.
    private struct Nested {
        let queue = QueueManager("groups")
        let running = HandDriven("running"), second = HandDriven("second"), last = HandDriven("last")
        let inner = GroupOperation(policy: .collectAll, width: 1).named("inner")
        let outer: GroupOperation<Void, GroupFailure>

        init() async throws {
            last.addDependency(running)
            try inner.add([running, second, last])
            outer = GroupOperation { [inner] group in try await group.run(inner) }.named("outer")
            try queue.add(outer)
            _ = await running.calls.events(atLeast: 1)
            while outer.waitReason?.kind != .children { await Task.yield() }
        }

        func end() async {
            outer.cancel()
            await queue.drained()
        }
    }

    @Test func `the graph shows groups with their children, including children that wait in the group`() async throws {
        let nested = try await Nested()
        let graph = nested.queue.graph()
        let names = Dictionary(uniqueKeysWithValues: graph.nodes.map { ($0.id, $0.name) })
        let groups = graph.nodes.map { "\($0.name) in \($0.group.flatMap { names[$0] } ?? "none")" }
        #expect(
            groups.sorted() == [
                "inner in outer", "last in inner", "outer in none", "running in inner", "second in inner",
            ])
        let second = try #require(graph.nodes.first { $0.name == "second" })
        let inner = try #require(graph.nodes.first { $0.name == "inner" })
        #expect(second.state == nil && inner.state == .running && inner.waitReason?.kind == .children)
        #expect(graph.edges.count == 1)
        #expect(graph.mermaid.contains("    n\(inner.id) -.- n\(second.id)\n"))
        #expect(graph.mermaid.contains("    n\(second.id)[\"second<br/>in its group\"]:::outside\n"))
        #expect(graph.dot.contains("    n\(inner.id) -> n\(second.id) [style=dashed, arrowhead=none];\n"))
        #expect(graph.dot.contains("inner\\nrunning, waiting for its children"))
        await nested.end()
    }

    @Test func `a graph shows a group outside the queue with its children, up to the limit of nodes`() async throws {
        let queue = QueueManager("children")
        let children = (0..<5).map { HandDriven("\($0)") }
        let group = GroupOperation.all(children, width: 3, on: queue).named("group")
        group.start()
        for child in children.prefix(3) { _ = await child.calls.events(atLeast: 1) }
        let graph = queue.graph()
        let drawn = try #require(graph.nodes.first { $0.name == "group" })
        #expect(drawn.state == nil && graph.nodes.count { $0.group == drawn.id } == 3)
        #expect(queue.graph(limit: 1).nodes.count <= 2)
        await group.cancelAndEnd()
    }

    @Test func `an explanation says why a group or one of its children waits`() async throws {
        let nested = try await Nested()
        let (queue, inner) = (nested.queue, nested.inner)
        #expect(queue.explain(nested.outer) == "outer runs in queue groups: waiting for its children: inner.")
        #expect(
            queue.explain(inner) == "inner runs in queue groups: waiting for its children: last, running, second.")
        #expect(
            queue.explain(nested.second) == "second is not in queue groups (a child of inner that waits for the "
                + "group to start it): its group runs at most 1 child at a time (held by running).")
        #expect(queue.explain(nested.running) == "running runs in queue groups.")
        await nested.end()
    }

    @Test func `a trace shows a group on its own lane, and its children on another lane`() async throws {
        let queue = QueueManager("trace", width: 1)
        queue.recording = QueueRecording(limit: 10)
        let children = ["one", "two"].map { name in ClosureOperation { name }.named(name) }
        let group = GroupOperation.all(children).named("group")
        try queue.add(group)
        _ = try await group.value
        await queue.drained()
        let runs = queue.record.runs
        #expect(runs.map(\.name) == ["group", "one", "two"] && runs.allSatisfy { $0.executing != nil })
        #expect(runs[1].lane == runs[2].lane && runs[0].lane != runs[1].lane)
        #expect(try !queue.record.chromeTrace().isEmpty)
    }
}
