// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What became of a case that was run in a child process.
enum ConformanceOutcome: Equatable, Sendable {
    case passed
    /// It ended, and something was not as it should be.
    case wrong(String)
    /// It ended the process.
    case crashed
    /// Nothing was heard of it any more.
    case hung

    /// What a child writes about a case that ended.
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
