// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Slots in the order in which they first came.
///
/// However often the same ones come, it holds at most twice as many as there are different ones.
struct SlotList {
    private var slots: [QueueMachine.Slot] = []
    private var limit = 64

    var isEmpty: Bool { slots.isEmpty }
    var count: Int { slots.count }

    mutating func append(_ slot: QueueMachine.Slot) {
        if slots.count >= limit {
            slots = distinct
            limit = max(slots.count * 2, 64)
        }
        slots.append(slot)
    }

    mutating func append(_ others: SlotList) {
        for slot in others.slots { append(slot) }
    }

    /// Takes all out, each once.
    mutating func takeAll() -> [QueueMachine.Slot] {
        defer { self = SlotList() }
        return slots.count > 1 ? distinct : slots
    }

    private var distinct: [QueueMachine.Slot] {
        var seen: Set<QueueMachine.Slot> = []
        return slots.filter { seen.insert($0).inserted }
    }
}
