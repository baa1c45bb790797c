// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if canImport(FoundationNetworking)
    import Foundation
    import OperationCore
    import OperationTestKit
    import Testing

    /// Tests Foundation's session on Linux in child processes, because it can end a whole process.
    ///
    /// CI runs the cases that do not disturb others and a single case that ends the process. The soak runs all cases.
    @Suite(.timeLimit(.minutes(10)), .serialized, .enabled(if: ConformanceChild.numbers == nil))
    struct URLSessionConformanceTests {
        private static let sampleOfEnds = "the largest possible Content-Length fails without a crash"

        private static var chosen: [Int] {
            ConformanceCase.all.indices.filter { index in
                let name = ConformanceCase.all[index].name
                guard !Rounds.isSoak, name != sampleOfEnds else { return true }
                switch URLSessionDifference.byName[name]?.kind {
                case .ends, .hangs, .unreliable: return false
                case .wrong, nil: return index % 4 == 0
                }
            }
        }

        @Test(.enabled(if: !isSanitized, "Under ThreadSanitizer, Foundation is too slow for its own limits."))
        func `URLSession fails exactly the conformance cases that URLSessionDifference lists`() async throws {
            let numbers = Self.chosen
            let half = numbers.count / 2
            async let first = TestThread.run { try ConformanceChild.outcomes(of: Array(numbers[..<half])) }
            async let second = TestThread.run { try ConformanceChild.outcomes(of: Array(numbers[half...])) }
            let outcomes = try await first.merging(try await second) { $1 }
            for number in numbers { check(ConformanceCase.all[number].name, outcomes[number]) }
            let passed = outcomes.values.filter { $0 == .passed }.count
            print("soak: URLSession passes \(passed) of \(numbers.count) cases of the conformance suite")
        }

        private func check(_ name: String, _ outcome: ConformanceOutcome?) {
            let kind = URLSessionDifference.byName[name]?.kind
            switch (outcome, kind) {
            // On a slow machine, a case with a different result may also time out.
            case (_, .unreliable), (.passed, nil), (.wrong, .wrong), (.hung, .wrong), (.crashed, .ends),
                (.hung, .hangs):
                break
            case (.passed, _): Issue.record("\(name): this case passes now. Remove it from URLSessionDifference.")
            case (nil, _): Issue.record("\(name): the child process did not run this case.")
            case (let outcome?, nil): Issue.record("\(name): \(outcome.line)")
            case (let outcome?, let kind?): Issue.record("\(name): listed as \(kind.rawValue), but \(outcome.line)")
            }
        }

        @Test func `every listed difference names an existing case and has a reason`() {
            let names = Set(ConformanceCase.all.map(\.name))
            for difference in URLSessionDifference.all {
                #expect(names.contains(difference.name), "\(difference.name)")
                #expect(!difference.reason.isEmpty, "\(difference.name)")
            }
        }

        @Test func `the table in SessionDifferences.md matches the list`() throws {
            let (begin, end) = ("<!-- differences: begin -->\n", "<!-- differences: end -->")
            let root = (0..<5).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }
            let page = root.appendingPathComponent("Docs/Guides/SessionDifferences.md")
            let text = try String(contentsOf: page, encoding: .utf8)
            let start = try #require(text.range(of: begin)).upperBound
            let stop = try #require(text.range(of: end)).lowerBound
            guard text[start..<stop] != URLSessionDifference.table else { return }
            if ProcessInfo.processInfo.environment["OPERATIONKIT_WRITE_DOCS"] != nil {
                try text.replacingCharacters(in: start..<stop, with: URLSessionDifference.table)
                    .write(to: page, atomically: true, encoding: .utf8)
            } else {
                Issue.record("The table is out of date. Run this test with OPERATIONKIT_WRITE_DOCS=1 to update it.")
            }
        }

        private static var isSanitized: Bool {
            #if TSAN
                true
            #else
                false
            #endif
        }
    }

    extension URLSessionDifference {
        /// The list as a table in Markdown.
        ///
        /// Consecutive differences with the same reason are in one row.
        fileprivate static var table: String {
            let groups = all.reduce(into: [[URLSessionDifference]]()) { groups, difference in
                if let last = groups.last?.first, last.kind == difference.kind, last.reason == difference.reason {
                    groups[groups.count - 1].append(difference)
                } else {
                    groups.append([difference])
                }
            }
            let rows = groups.map { group in
                let names = group.map { $0.name.replacing("|", with: "\\|").replacing("<", with: "&lt;") }
                return "| \(names.joined(separator: "; ")) | \(group[0].kind.rawValue) | \(group[0].reason) |\n"
            }
            return "| expected behavior of every session | `URLSession` on Linux | reason |\n| --- | --- | --- |\n"
                + rows.joined()
        }
    }
#endif
