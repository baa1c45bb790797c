// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What one transfer spent its time with, phase after phase: a pure value made of what the session measured.
///
/// The phases follow each other without gaps from the beginning to the end, and none is negative, whatever was measured.
package struct TransferPhases: Sendable {
    package enum Kind: String, Sendable, CaseIterable, CustomStringConvertible {
        case queued, dns, connect, tls, request, wait, receive

        package var description: String { rawValue }
    }

    package struct Phase: Sendable {
        package let kind: Kind
        package let began: Duration
        package let ended: Duration

        package var length: Duration { ended - began }
    }

    package private(set) var list: [Phase] = []

    /// - Parameter bodySent: When the body was handed over, counted from the beginning.
    package init(_ metrics: TransferMetrics, bodySent: Duration? = nil) {
        var moment = Duration.zero
        let end = max(metrics.ended ?? metrics.firstByte ?? metrics.requestBegan ?? .zero, .zero)
        func add(_ kind: Kind, until measured: Duration?) {
            guard let measured else { return }
            let next = min(max(measured, moment), end)
            list.append(Phase(kind: kind, began: moment, ended: next))
            moment = next
        }
        add(.queued, until: metrics.slotGranted)
        add(.dns, until: metrics.nameResolved)
        add(.connect, until: metrics.connected)
        add(.tls, until: metrics.secured)
        // What passes between the connection and the request is neither.
        if let began = metrics.requestBegan { moment = min(max(began, moment), end) }
        // Word of the last portion may come with the answer: then it is not known how long it took to send them.
        let sent = bodySent.flatMap { $0 < metrics.firstByte ?? end ? $0 : nil }
        if metrics.requestBegan != nil { add(.request, until: sent ?? moment) }
        add(.wait, until: metrics.firstByte)
        if metrics.firstByte != nil { add(.receive, until: metrics.ended) }
    }

    package subscript(kind: Kind) -> Duration? { list.first { $0.kind == kind }?.length }
}
