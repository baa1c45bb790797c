// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

enum CountError: Error {
    case emptyText
}

/// Counts the words of a text; its work is done when `main()` returns.
final class CountWords: SyncOperation<Int, CountError>, @unchecked Sendable {
    private let text: String

    init(of text: String) {
        self.text = text
    }

    override func main() {
        let words = text.split(separator: " ").count
        if words > 0 { finish(withResult: words) } else { finish(withError: .emptyText) }
    }
}

/// Adds up numbers and answers a while later, as a server would.
final class Sum: AsyncOperation<Int, Never>, @unchecked Sendable {
    var numbers: [Int] = []

    override func main() {
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) { [self] in
            finish(withResult: numbers.reduce(0, +))
        }
    }
}

/// Calls a server that never answers, so that one has to give up.
final class SilentCall: AsyncOperation<String, Never>, @unchecked Sendable {
    override func main() {}
    override func didCancel(because cause: CancellationCause) {
        // A real call would hang up here.
    }
}
