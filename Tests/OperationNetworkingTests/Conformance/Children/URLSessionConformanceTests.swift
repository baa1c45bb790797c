// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(FoundationNetworking)
    import Foundation
    import OperationCore
    import OperationTestKit
    import Testing

    /// Foundation's session on Linux, in child processes, for it can end a whole process.
    ///
    /// In CI the cases run that do no harm to others, and one that ends the process; in the soak all of them.
    @Suite(.timeLimit(.minutes(10)), .serialized, .enabled(if: ConformanceChild.numbers == nil))
    struct URLSessionConformanceTests {
        private static let sampleOfEnds = "the largest length is an error and no trap"

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

        @Test(.enabled(if: !isSanitized, "Foundation is too slow under ThreadSanitizer for its own limits."))
        func `what URLSession does and does not pass is what the list says`() async throws {
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
            // On a slow machine what is different may also come too late.
            case (_, .unreliable), (.passed, nil), (.wrong, .wrong), (.hung, .wrong), (.crashed, .ends),
                (.hung, .hangs):
                break
            case (.passed, _): Issue.record("\(name): it passes now. Take it off the list.")
            case (nil, _): Issue.record("\(name): the child did not come to it.")
            case (let outcome?, nil): Issue.record("\(name): \(outcome.line)")
            case (let outcome?, let kind?): Issue.record("\(name): listed as \(kind.rawValue), but \(outcome.line)")
            }
        }

        @Test func `the list names cases that there are, each with a reason`() {
            let names = Set(ConformanceCase.all.map(\.name))
            for difference in URLSessionDifference.all {
                #expect(names.contains(difference.name), "\(difference.name)")
                #expect(!difference.reason.isEmpty, "\(difference.name)")
            }
        }

        @Test func `the table of the documentation is the list`() throws {
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
                Issue.record("The table is another. Run this test with OPERATIONKIT_WRITE_DOCS=1 to write it.")
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
        fileprivate static var table: String {
            let rows = all.map { difference in
                let name = difference.name.replacing("|", with: "\\|").replacing("<", with: "&lt;")
                return "| \(name) | \(difference.kind.rawValue) | \(difference.reason) |\n"
            }
            return "| what every session should do | `URLSession` on Linux | why |\n| --- | --- | --- |\n"
                + rows.joined()
        }
    }
#endif
