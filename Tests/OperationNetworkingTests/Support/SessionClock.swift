// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Dispatch
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// The clock for the time limits of a session on libcurl.
    ///
    /// A test can move this clock forward or stop it.
    ///
    /// libcurl itself always uses the clock of the system.
    final class SessionClock: Sendable {
        private struct State {
            var leaps = Duration.zero
            /// The time of the system's clock when this clock was stopped.
            var stop: UInt64?
        }

        private let state: Locked<State>

        /// - Parameter stands: Whether the clock moves only by leaps.
        init(stands: Bool = false) {
            state = Locked(State(stop: stands ? DispatchTime.now().uptimeNanoseconds : nil))
        }

        /// The difference between this clock and the system's clock.
        var lead: Duration {
            let (leaps, stop) = state.withLock { ($0.leaps, $0.stop) }
            guard let stop else { return leaps }
            return leaps - .nanoseconds(Int64(DispatchTime.now().uptimeNanoseconds - stop))
        }

        /// Moves the clock.
        ///
        /// The session notices this with its next request, which goes to another server.
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

        /// Moves the clock.
        ///
        /// The session notices this later.
        func leap(_ duration: Duration) { state.withLock { $0.leaps += duration } }
    }
#endif
