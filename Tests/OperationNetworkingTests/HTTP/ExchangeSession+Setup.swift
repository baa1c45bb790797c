// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationNetworking

extension ExchangeSession {
    /// Creates a session with a changed configuration.
    static func over(
        _ transport: any NetworkSession, _ change: (inout ExchangeConfiguration) -> Void
    ) -> ExchangeSession {
        ExchangeSession(over: transport, configuration: with(ExchangeConfiguration(), change))
    }

    /// Starts a task and suspends it while the cache is busy.
    func startSuspended(_ task: any NetworkTask) {
        let goOn = DispatchSemaphore(value: 0)
        configuration.cache?.perform { _, _ in goOn.wait() }
        task.resume()
        task.suspend()
        goOn.signal()
    }
}
