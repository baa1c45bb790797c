// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why a queue is suspended: because its user said so, or for reasons that others have.
struct QueueSuspension: Sendable {
    private var isAskedFor = false
    /// Why, or by whom, if it was said.
    private var reason: String?
    private var holds: [ObjectIdentifier: String] = [:]

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

    mutating func hold(_ hold: QueueHold, because reason: String) { holds[ObjectIdentifier(hold)] = reason }
    mutating func endHold(_ hold: QueueHold) { holds[ObjectIdentifier(hold)] = nil }

    mutating func endAll() { self = QueueSuspension() }
}
