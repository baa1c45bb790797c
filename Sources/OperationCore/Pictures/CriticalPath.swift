// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The chain of dependencies that took longest: what to make faster if the whole is to be faster.
public struct CriticalPath: Sendable, Equatable {
    /// The operations of the chain, from the first to the last.
    public let runs: [QueueRun.ID]
    /// How long they executed, all together.
    public let duration: Duration
    /// By how much longer each operation could have executed without making the longest chain longer.
    public let slack: [QueueRun.ID: Duration]
}

extension QueueRecord {
    /// The chain of dependencies whose operations executed longest, and how much room each other operation has.
    ///
    /// Only time spent executing counts: what an operation waited for a place is the queue's doing, not the graph's.
    public var criticalPath: CriticalPath {
        let order = runsInOrder
        let times = Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0.executing ?? .zero) })
        // The longest chain that ends with an operation, and the longest that begins with it.
        var ending: [QueueRun.ID: Duration] = [:], before: [QueueRun.ID: QueueRun.ID] = [:]
        for run in order {
            let longest = run.dependencies.compactMap { id in ending[id].map { (id, $0) } }.max { $0.1 < $1.1 }
            ending[run.id] = (longest?.1 ?? .zero) + (times[run.id] ?? .zero)
            before[run.id] = longest?.0
        }
        var following: [QueueRun.ID: Duration] = [:]
        for run in order.reversed() {
            let tail = (times[run.id] ?? .zero) + (following[run.id] ?? .zero)
            for id in run.dependencies { following[id] = max(following[id] ?? .zero, tail) }
        }
        guard let last = order.max(by: { (ending[$0.id] ?? .zero) < (ending[$1.id] ?? .zero) }) else {
            return CriticalPath(runs: [], duration: .zero, slack: [:])
        }
        let duration = ending[last.id] ?? .zero
        let path = Array(sequence(first: last.id) { before[$0] }).reversed()
        let slack = ending.map { id, time in (id, duration - time - (following[id] ?? .zero)) }
        return CriticalPath(
            runs: Array(path), duration: duration, slack: Dictionary(uniqueKeysWithValues: slack))
    }

    /// Each after those that it waited for.
    private var runsInOrder: [QueueRun] {
        let byID = Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0) })
        var missing: [QueueRun.ID: Int] = [:], dependents: [QueueRun.ID: [QueueRun.ID]] = [:]
        for run in runs {
            let known = run.dependencies.filter { byID[$0] != nil }
            missing[run.id] = known.count
            for id in known { dependents[id, default: []].append(run.id) }
        }
        var order = runs.filter { missing[$0.id] == 0 }
        var next = 0
        while next < order.count {
            for id in dependents[order[next].id] ?? [] {
                missing[id, default: 0] -= 1
                if missing[id] == 0, let run = byID[id] { order.append(run) }
            }
            next += 1
        }
        return order
    }
}
