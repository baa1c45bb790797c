// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Stands in a queue of choice for an operation that was put aside, and goes on when its turn comes there.
///
/// It takes a place for as long as the operation works, and none while that waits.
final class PostponedRun: AsyncOperation<Void, Never>, @unchecked Sendable {
    // Sendable: what it keeps does not change.
    private let operation: any AttemptHost
    private let begin: @Sendable () -> Void

    init(of operation: any AttemptHost, _ begin: @escaping @Sendable () -> Void) {
        self.operation = operation
        self.begin = begin
        super.init()
        name = operation.name.map { "\($0), again" }
        // Whether or not its turn had come.
        whenEnded { [weak self, operation] in
            if let cause = self?.outcome?.cancellationCause { operation.cancelIfUndecided(because: cause) }
        }
    }

    override func main() {
        // Whoever stood for it before has done so.
        (operation.networkAttempts.takeStandIn() as? PostponedRun)?.finish(withResult: ())
        operation.whenEnded { [weak self] in self?.finish(withResult: ()) }
        operation.networkAttempts.stand(self)
        begin()
    }
}
