// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Holds the requests of one operation back while their origin is to be left alone.
final class PauseGate: AttemptGate {
    private struct State {
        var ticket: OriginPauses.Ticket?
        /// Since when it is held back, again and again, for the present attempt.
        var began: (attempt: Int, at: OperationInstant)?
        /// Its turn has come, and it asks once more.
        var hasWaited = false
        /// Where the request goes that may leave.
        var origin: RequestOrigin?
        var isForgotten = false
    }

    private let pauses: OriginPauses
    private let state = Locked(State())

    /// How long a request waits for which others wait, since it is for a refresh.
    private static var longestOfRefresh: Duration { .seconds(5) }

    init(_ pauses: OriginPauses) {
        self.pauses = pauses
    }

    var rank: Int { AttemptRank.pause }

    func clear(
        _ request: NetworkRequest, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptClearance) -> Void
    ) {
        let hasWaited = state.withLock { exchange(&$0.hasWaited, with: false) }
        state.withLock { $0.origin = request.origin }
        guard let left = pauses.left(for: request.origin, hasWaited: hasWaited) else { return answer(.go(request)) }
        // Many wait for a refresh, and for no longer than its own limit: they learn at once where it would take long.
        guard pauses.meanwhile == .wait, left <= Self.longestOfRefresh || !host.networkAttempts.isForRefresh,
            mayWait(left, host)
        else {
            return answer(.refuse(.originPaused(left, request.origin)))
        }
        let turns = TurnTaking()
        let goOn: @Sendable () -> Void = { [weak self] in
            self?.state.withLock { ($0.ticket, $0.hasWaited) = (nil, true) }
            turns.second { answer(.again) }
        }
        guard let ticket = pauses.wait(for: request.origin, goOn) else {
            return answer(.again)
        }
        let isForgotten = state.withLock { state in
            state.ticket = ticket
            return state.isForgotten
        }
        if isForgotten { pauses.leave(ticket) }
        turns.first { answer(.hold(.originPause(left))) }
    }

    func mayLeave(_ number: Int) -> Bool {
        guard let origin = state.withLock({ $0.origin }) else { return true }
        return pauses.left(for: origin, hasWaited: true) == nil
    }

    /// Whether the attempt would not wait for too long in all, nor for longer than the operation has.
    private func mayWait(_ left: Duration, _ host: any AttemptHost) -> Bool {
        let (now, attempt) = (pauses.clock.now, host.attemptCount)
        let began = state.withLock { state in
            if state.began?.attempt != attempt { state.began = (attempt, now) }
            return state.began?.at ?? now
        }
        if began.duration(to: now) + left > pauses.longest { return false }
        return host.timeLeft(at: host.clock.now).map { left < $0 } ?? true
    }

    func forget() {
        let ticket = state.withLock { state in
            state.isForgotten = true
            return exchange(&state.ticket, with: nil)
        }
        if let ticket { pauses.leave(ticket) }
    }
}

extension AttemptRank {
    /// The origin is to be left alone.
    package static let pause = 25
}

extension WaitReason {
    fileprivate static func originPause(_ left: Duration) -> WaitReason {
        let tenths = left.saturatedNanoseconds / 100_000_000
        return WaitReason(.pause, "waiting \(tenths / 10).\(tenths % 10) s, for the server asked all to")
    }
}

extension NetworkError.Code {
    /// The server asked to be left alone (`Retry-After`), and the operation was not to wait so long: see ``OriginPauses``.
    public static let originPaused = Self("originPaused")
}

extension NetworkError {
    fileprivate static func originPaused(_ left: Duration, _ origin: RequestOrigin) -> NetworkError {
        var error = NetworkError(
            code: .originPaused, phase: .waiting,
            message:
                "\(origin.name) asked to be left alone for a while. Try again later (retryAfter), or allow more time.")
        error.retryAfter = left
        return error
    }
}
