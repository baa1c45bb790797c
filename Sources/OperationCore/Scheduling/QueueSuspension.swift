// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why a queue is suspended: because its user said so, or for reasons that others have.
struct QueueSuspension: Sendable {
    /// Whether its user said so.
    private(set) var isAskedFor = false
    /// Why, or by whom, if it was said.
    private var reason: String?
    private var holds: [ObjectIdentifier: String] = [:]
    /// Whether nobody but the user may suspend it any more.
    private var isOver = false

    var isSuspended: Bool { isAskedFor || !holds.isEmpty }

    /// All that was said about it.
    var reasons: String? {
        let said = (reason.map { [$0] } ?? []) + Set(holds.values).sorted()
        return said.isEmpty ? nil : said.joined(separator: ", ")
    }

    mutating func set(_ isAskedFor: Bool, because reason: String?) {
        self.isAskedFor = isAskedFor
        self.reason = isAskedFor ? reason : nil
    }

    mutating func hold(_ hold: QueueHold, because reason: String) {
        if !isOver { holds[ObjectIdentifier(hold)] = reason }
    }

    mutating func endHold(_ hold: QueueHold) { holds[ObjectIdentifier(hold)] = nil }

    /// Ends it for all reasons: the queue was shut down, and what is left of it must be able to end.
    mutating func endAll() {
        self = QueueSuspension()
        isOver = true
    }
}
