// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

extension ManagedOperation {
    /// Starts the operation, and waits until it has ended.
    func startAndEnd() async {
        start()
        await ended()
    }

    func setTimeout(_ timeout: Duration?, on clock: any OperationClock) {
        self.clock = clock
        self.timeout = timeout
    }
}

extension TypedOperation {
    /// Starts the operation, and finishes it on the same thread.
    func startAndFinish(withResult result: ResultType) {
        start()
        finish(withResult: result)
    }
}
