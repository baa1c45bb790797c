// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux)
    import Dispatch
    import OperationNetworking

    /// Tests a monitor whose first request the system refuses.
    ///
    /// The caller arranges this, and the monitor tries again.
    struct Sending {
        func run() {
            let began = ContinuousClock.now, monitor = NetlinkMonitor()
            if monitor.connectivity.status != .unknown { print("BAD: it was known at once") }
            let known = DispatchSemaphore(value: 0)
            let observation = monitor.observe { if $0.status != .unknown { known.signal() } }
            if known.wait(timeout: .now() + 60) == .timedOut { print("BAD: it does not ask again") }
            if began.duration(to: .now) < .milliseconds(900) { print("BAD: it did not pause") }
            if let failure = monitor.failure { print("BAD: \(failure)") }
            observation.cancel()
        }
    }
#endif
