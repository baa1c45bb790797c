// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Dispatch
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// The clock by which a session on libcurl keeps its time limits; a test can have it leap ahead, or stand still.
    ///
    /// libcurl goes by the system's clock, whatever this one says.
    final class SessionClock: Sendable {
        private struct State {
            var leaps = Duration.zero
            /// What the system's clock said when this one came to a standstill.
            var stop: UInt64?
        }

        private let state: Locked<State>

        /// - Parameter stands: Whether it moves by leaps only.
        init(stands: Bool = false) {
            state = Locked(State(stop: stands ? DispatchTime.now().uptimeNanoseconds : nil))
        }

        /// How far it is ahead of the system's clock.
        var lead: Duration {
            let (leaps, stop) = state.withLock { ($0.leaps, $0.stop) }
            guard let stop else { return leaps }
            return leaps - .nanoseconds(Int64(DispatchTime.now().uptimeNanoseconds - stop))
        }

        /// Moves it, and waits until the session has noticed, which it does with the next request: to another server.
        func leap(_ duration: Duration, noticedBy session: some NetworkSession) async throws {
            state.withLock { $0.leaps += duration }
            let other = try LoopbackServer()
            other.route("/") { _ in .text("other") }
            let request = try NetworkRequest(url: other.url(), options: TransferOptions(timeouts: .none))
            let receiver = RecordingReceiver()
            session.makeTask(with: request, receiver: receiver).resume()
            #expect(await receiver.end().text == "other")
            await other.stopped()
        }

        /// Moves it; the session notices some time.
        func leap(_ duration: Duration) { state.withLock { $0.leaps += duration } }
    }
#endif
