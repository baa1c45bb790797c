// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if canImport(FoundationNetworking)
    import Foundation
    import OperationCore
    import Testing

    /// Runs in a child process: the cases that the environment names, one after the other.
    @Suite(.enabled(if: ConformanceChild.numbers != nil, "This suite runs only in child processes."))
    struct ConformanceChildTests {
        @Test func `run the conformance cases of this child process`() async throws {
            for number in ConformanceChild.numbers ?? [] {
                let conformanceCase = ConformanceCase.all[number]
                ConformanceChild.say("begin \(number)")
                let issues = Locked<[String]>([])
                try await withKnownIssue(isIntermittent: true) {
                    try await conformanceCase.run(with: .urlSession)
                } matching: { issue in
                    issues.withLock { $0.append("\(issue)") }
                    return true
                }
                let first = issues.withLock { $0.first }
                let outcome = first.map { ConformanceOutcome.wrong($0) } ?? .passed
                guard case .wrong(let text) = outcome, text.contains("this hangs") else {
                    ConformanceChild.say("end \(number) \(outcome.line)")
                    continue
                }
                // Work that is still running in this process would disturb the next case.
                ConformanceChild.say("end \(number) \(ConformanceOutcome.hung.line)")
                exit(3)
            }
        }
    }
#endif
