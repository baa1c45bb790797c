// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The line before one host: those of a higher priority first, and those of one priority in the order of their arrival.
///
/// So that nobody stands in it for ever, it is the turn of who came first of all when several have passed him by. Each
/// step costs the same however many wait.
struct SlotLine {
    /// How many may pass somebody by who came before them.
    private static var patience: Int { 7 }

    /// The highest priority first.
    private var lines = [Fifo<UInt64>](repeating: Fifo(), count: TransferPriority.count)
    private var passed = 0

    mutating func append(_ number: UInt64, _ priority: TransferPriority) {
        lines[TransferPriority.count - 1 - priority.rank].append(number)
    }

    /// The next, who leaves the line.
    mutating func popFirst() -> UInt64? {
        guard let first = lines.firstIndex(where: { !$0.isEmpty }) else { return nil }
        var oldest = first
        for index in lines.indices.dropFirst(first + 1) {
            guard let number = lines[index].first, let known = lines[oldest].first, number < known else { continue }
            oldest = index
        }
        if oldest == first || passed >= Self.patience {
            passed = 0
            return lines[oldest].popFirst()
        }
        passed += 1
        return lines[first].popFirst()
    }
}
