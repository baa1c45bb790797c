// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationExporters
import OperationTestKit
import Testing

@Suite("Pictures of the graph", .nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueGraphTests {
    @Test
    func `a graph shows the operations of a queue, their dependencies and their dependents elsewhere`() async throws {
        let queue = QueueManager("graph"), other = QueueManager("other")
        let outside = HandDriven("outside"), running = HandDriven("running")
        let waiting = HandDriven("waiting"), elsewhere = HandDriven("elsewhere")
        waiting.addDependency(running)
        waiting.addDependency(outside)
        elsewhere.addDependency(waiting)
        try queue.add([running, waiting])
        try other.add(elsewhere)
        _ = await running.calls.events(atLeast: 1)
        let graph = queue.graph()
        let names = Dictionary(uniqueKeysWithValues: graph.nodes.map { ($0.id, $0.name) })
        let edges = Set(graph.edges.map { "\(names[$0.upstream] ?? "") \(names[$0.downstream] ?? "")" })
        #expect(edges == ["running waiting", "outside waiting", "waiting elsewhere"])
        #expect(graph.nodes.first { $0.name == "running" }?.state == .running)
        #expect(graph.nodes.first { $0.name == "outside" }?.state == nil)
        #expect(queue.graph(limit: 1).omittedCount == 1)
        #expect(queue.graph(limit: .max).omittedCount == 0)
        for operation in [outside, running, waiting, elsewhere] { operation.cancel() }
        await queue.drained()
    }

    private static let nasty = "a \"b\" \\n <c> & `d` #35; [e] {f} |g|\n\u{7}end"

    private static let graph = QueueGraph(
        queue: "the \"queue\"",
        nodes: [
            QueueGraph.Node(id: 0, name: nasty, state: .running, hasEnded: false),
            QueueGraph.Node(id: 1, name: "später", state: nil, hasEnded: true),
        ], edges: [QueueGraph.Edge(upstream: 1, downstream: 0)], omittedCount: 3)

    @Test func `Mermaid: each node and edge has its own line, and names use entities`() {
        let lines = Self.graph.mermaid.split(separator: "\n").map(String.init)
        #expect(lines.first == "flowchart LR")
        #expect(
            lines.dropFirst().first
                == "    n0[\"a #34;b#34; #92;n #60;c#62; #38; #96;d#96; #35;35#59; #91;e#93; #123;f#125; #124;g#124;  end"
                + "<br/>running\"]:::running")
        #expect(lines.contains("    n1[\"später<br/>ended\"]:::ended"))
        #expect(lines.contains("    n1 --> n0"))
        #expect(lines.contains("    more[\"and 3 more\"]"))
        #expect(lines.contains { $0.hasPrefix("    classDef running fill:") })
    }

    @Test func `DOT: strings are escaped so that Graphviz draws the names as they are`() async throws {
        let text = Self.graph.dot
        #expect(text.hasPrefix("digraph \"the \\\"queue\\\"\" {\n"))
        #expect(text.contains("label=\"a \\\"b\\\" \\\\n <c> & `d` #35; [e] {f} |g|\\n end\\nrunning\""))
        #expect(text.contains("    n1 -> n0;\n"))
        #if os(Linux) || os(macOS)
            guard
                let tool = ["/usr/bin/dot", "/usr/local/bin/dot", "/opt/homebrew/bin/dot"].first(where: {
                    FileManager.default.isExecutableFile(atPath: $0)
                })
            else {
                print("SKIPPED: Graphviz is not installed, so no other program has read the DOT text.")
                return
            }
            let picture = try await TestThread.run { try Self.draw(text, tool) }
            #expect(picture.contains("<svg"))
            #expect(picture.contains("a &quot;b&quot; \\n &lt;c&gt; &amp; `d` #35; [e] {f} |g|"))
            #expect(picture.contains("später"))
        #endif
    }

    #if os(Linux) || os(macOS)
        private static func draw(_ text: String, _ tool: String) throws -> String {
            let process = Process(), input = Pipe(), output = Pipe()
            process.executableURL = URL(fileURLWithPath: tool)
            process.arguments = ["-Tsvg"]
            process.standardInput = input
            process.standardOutput = output
            try process.run()
            try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
            try input.fileHandleForWriting.close()
            let picture = try output.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
            return String(decoding: picture, as: UTF8.self)
        }
    #endif
}
