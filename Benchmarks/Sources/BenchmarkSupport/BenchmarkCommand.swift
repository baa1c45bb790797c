// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The command line of each benchmark: `[--check] [--smoke] [--only PART] [--json FILE]`.
package struct BenchmarkCommand {
    /// A named group of figures that are measured together.
    package struct Part {
        let name: String
        let measure: (Scale) -> [Figure]

        package init(_ name: String, _ measure: @escaping (Scale) -> [Figure]) {
            self.name = name
            self.measure = measure
        }
    }

    private let name: String
    private let parts: [Part]

    package init(_ name: String, parts: [Part]) {
        self.name = name
        self.parts = parts
    }

    package init(_ name: String, workload: @escaping (Scale) -> [Figure]) {
        self.init(name, parts: [Part("all", workload)])
    }

    /// Runs the parts of the benchmark that the arguments select, and ends the process.
    package func main() -> Never {
        var arguments = Array(CommandLine.arguments.dropFirst())
        let isCheck = take("--check", from: &arguments)
        let isSmoke = take("--smoke", from: &arguments)
        let file = takeValue(of: "--json", from: &arguments)
        let only = takeValue(of: "--only", from: &arguments)
        let chosen = parts.filter { only == nil || $0.name == only }
        guard arguments.isEmpty, !chosen.isEmpty else { fail(usage) }
        #if DEBUG
            print("This is a debug build: its figures mean nothing. Add -c release.")
        #endif
        let scale = isSmoke ? Scale.smoke : .full
        let measured = chosen.map { ($0.name, $0.measure(scale)) }
        let unmeasured = measured.filter { $0.1.isEmpty }.map(\.0)
        let report = Report(workload: name, figures: measured.flatMap(\.1))
        print(report.table)
        do {
            let json = try report.json
            if let file {
                try json.write(to: URL(fileURLWithPath: file))
            } else {
                print(String(decoding: json, as: UTF8.self))
            }
        } catch {
            fail("The JSON could not be written: \(error)")
        }
        let missed = report.figures.filter { !$0.isMet }
        for figure in missed { print("MISSED: \(figure.name): \(figure.judged), target \(figure.target.text)") }
        // A part without measurements must not count as a success.
        for part in unmeasured { print("MISSED: \(part): nothing could be measured") }
        exit(isCheck && !(missed.isEmpty && unmeasured.isEmpty) ? 1 : 0)
    }

    private func take(_ flag: String, from arguments: inout [String]) -> Bool {
        defer { arguments.removeAll { $0 == flag } }
        return arguments.contains(flag)
    }

    private func takeValue(of option: String, from arguments: inout [String]) -> String? {
        guard let index = arguments.firstIndex(of: option) else { return nil }
        guard index + 1 < arguments.count else { fail(usage) }
        defer { arguments.removeSubrange(index...index + 1) }
        return arguments[index + 1]
    }

    private func fail(_ message: String) -> Never {
        FileHandle.standardError.write(Data((message + "\n").utf8))
        exit(2)
    }

    private var usage: String {
        """
        usage: swift run -c release --package-path Benchmarks \(name) [--check] [--smoke] [--only PART] \
        [--json FILE]
          --check   exit with 1 where a target is missed, or a part could not be measured
          --smoke   small sizes, to see that it works
          --only    just one part: \(parts.map(\.name).joined(separator: ", "))
          --json    write the JSON to FILE instead of printing it
        """
    }
}
