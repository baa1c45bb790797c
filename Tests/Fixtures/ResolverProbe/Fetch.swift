// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking

    /// A task and its outcome.
    final class Fetch: NetworkReceiver {
        private struct State {
            var status: Int?
            var ends: [NetworkError?] = []
        }

        private let state = Locked(State())
        private let isOver = DispatchSemaphore(value: 0)
        private let started = ContinuousClock.now

        func task(_ task: any NetworkTask, didReceive head: ResponseHead) { state.withLock { $0.status = head.status } }
        func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}

        func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
            state.withLock { $0.ends.append(error) }
            isOver.signal()
        }

        var isEnded: Bool { state.withLock { !$0.ends.isEmpty } }

        /// The error that ended the task, or `nil`.
        var error: NetworkError? { state.withLock { $0.ends.first ?? nil } }

        /// Waits for the end and returns the status or the error code, or "no end" after a timeout.
        func outcome() -> String {
            // The semaphore is signaled again so that the end can be awaited repeatedly.
            if isOver.wait(timeout: .now() + 20) == .timedOut { return "no end" }
            isOver.signal()
            return state.withLock { state in
                if state.ends.count != 1 { return "\(state.ends.count) ends" }
                return error(in: state) ?? "\(state.status ?? 0)"
            }
        }

        private func error(in state: State) -> String? { state.ends.first.flatMap { $0 }.map { "\($0.code)" } }

        /// The time since the start of the task.
        var age: Duration { ContinuousClock.now - started }
    }

    extension CurlSession {
        /// Starts a request to a host by name.
        func begin(
            _ host: String, _ port: UInt16, connect: Duration? = nil
        ) throws -> (fetch: Fetch, task: any NetworkTask) {
            guard let url = URL(string: "http://\(host):\(port)/") else { throw CocoaError(.fileNoSuchFile) }
            var options = TransferOptions()
            options.timeouts.connect = connect
            let fetch = Fetch()
            let task = makeTask(with: try NetworkRequest(url: url, options: options), receiver: fetch)
            task.resume()
            return (fetch, task)
        }
    }
#endif
