// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The outcome of a case that ran in a child process.
enum ConformanceOutcome: Equatable, Sendable {
    case passed
    /// The case ended with an issue.
    case wrong(String)
    /// The case ended the process.
    case crashed
    /// The case did not end in time.
    case hung

    /// Parses the line that a child writes about a case that ended.
    init(line: Substring) {
        self =
            switch line {
            case "passed": .passed
            case "hung": .hung
            default: .wrong(String(line.dropFirst("wrong ".count)))
            }
    }

    var line: String {
        switch self {
        case .passed: "passed"
        case .wrong(let reason): "wrong " + reason.replacing("\n", with: " ")
        case .crashed: "crashed"
        case .hung: "hung"
        }
    }
}
