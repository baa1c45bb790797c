// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which time limit of a transfer expires when, in nanoseconds of the system's monotonic clock.
package struct TransferDeadlines: Sendable {
    /// The limit that was exceeded.
    package enum Limit: Sendable {
        case connect
        case firstByte
        case idle
        case total

        /// What happened, and what to do about it.
        var message: String {
            let text =
                switch self {
                case .connect: "No connection was ready within the time limit (timeouts.connect)."
                case .firstByte: "The server did not begin to answer within the time limit (timeouts.firstByte)."
                case .idle: "Nothing moved for longer than the time limit (timeouts.idle)."
                case .total: "The transfer was not complete within the time limit (timeouts.total)."
                }
            return "\(text) Raise it in the request's options, or see what keeps the server."
        }
    }

    private enum Stage {
        case connecting
        case uploading
        case awaiting
        case receiving
    }

    private let connect: Int64
    private let firstByte: Int64
    private let idle: Int64
    private let total: Int64
    private var stage = Stage.connecting
    private var began: Int64
    /// When the present connection began to be sought.
    private var sought: Int64
    /// When something moved last.
    private var moved: Int64
    private var pausedSince: Int64?
    /// How long it was paused in all.
    package private(set) var paused: Int64 = 0

    package init(_ timeouts: TransferTimeouts, now: Int64) {
        func nanoseconds(_ duration: Duration?) -> Int64 { duration?.saturatedNanoseconds ?? .max }
        connect = nanoseconds(timeouts.connect)
        firstByte = nanoseconds(timeouts.firstByte)
        idle = nanoseconds(timeouts.idle)
        total = nanoseconds(timeouts.total)
        began = now
        sought = now
        moved = now
    }

    /// The request is to be sent anew over another connection: only the limit of the whole goes on.
    package mutating func restart(at now: Int64) {
        resume(at: now)
        stage = .connecting
        sought = now
        moved = now
    }

    /// The connection is ready.
    package mutating func connected(at now: Int64) {
        guard stage == .connecting else { return }
        stage = .awaiting
        moved = now
    }

    /// Bytes of the request's body went out; `isLast` if those were all.
    package mutating func sent(at now: Int64, isLast: Bool) {
        moved = now
        guard stage != .receiving else { return }
        stage = isLast ? .awaiting : .uploading
    }

    /// Bytes of the response came in; true if they were the first, and another limit holds now.
    package mutating func received(at now: Int64) -> Bool {
        moved = now
        guard stage != .receiving else { return false }
        stage = .receiving
        return true
    }

    package mutating func pause(at now: Int64) {
        if pausedSince == nil { pausedSince = now }
    }

    package mutating func resume(at now: Int64) {
        guard let since = pausedSince else { return }
        pausedSince = nil
        paused += now - since
        began += now - since
        sought += now - since
        moved += now - since
    }

    /// The first moment at which a limit may be exceeded if nothing moves until then; nil if there is none.
    package var next: Int64? {
        guard pausedSince == nil else { return nil }
        let due = min(current.due, began.addingSaturated(total))
        return due == .max ? nil : due
    }

    /// The limit that is exceeded now.
    package func exceeded(at now: Int64) -> Limit? {
        guard pausedSince == nil else { return nil }
        let (due, limit) = current
        if began.addingSaturated(total) <= now { return .total }
        return due <= now ? limit : nil
    }

    private var current: (due: Int64, limit: Limit) {
        switch stage {
        case .connecting: (sought.addingSaturated(connect), .connect)
        case .awaiting: (moved.addingSaturated(firstByte), .firstByte)
        case .uploading, .receiving: (moved.addingSaturated(idle), .idle)
        }
    }
}

extension Int64 {
    fileprivate func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
