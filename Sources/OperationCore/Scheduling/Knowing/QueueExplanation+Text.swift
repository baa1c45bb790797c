// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension QueueExplanation {
    /// All of it as a sentence.
    public var description: String {
        let subject = "\(operation.displayName) \(verb)"
        if reasons.isEmpty { return subject + "." }
        return subject + ": " + reasons.map(\.description).joined(separator: "; ") + "."
    }

    private var verb: String {
        guard case .inQueue(let other, let state) = standing else { return "is not in queue \(queue): \(standing)" }
        if other != queue { return "is not in queue \(queue), but \(standing)" }
        return switch state {
        case .waiting: "waits in queue \(queue)"
        case .held: "is held in queue \(queue)"
        case .ready: reasons.isEmpty ? "is about to begin in queue \(queue)" : "is ready in queue \(queue)"
        case .running: "runs in queue \(queue)"
        case .ending: "was cancelled in queue \(queue), and is about to end"
        }
    }
}

extension QueueExplanation.Reason: CustomStringConvertible {
    /// The reason as a part of a sentence.
    public var description: String {
        switch self {
        case .dependency(let dependency): "for \(dependency.operation.displayName) (\(dependency.standing))"
        case .hold(let hold): "by \(hold.detail)\(hold.saysWho ? "" : ", held by \(names(of: hold.holders))")"
        case .suspended(let reason): "the queue is suspended" + (reason.map { " (\($0))" } ?? "")
        case .threadLimit(let count): "all \(count) threads that the queues of the process may have are taken"
        case .barrier(let wait): wait.description
        case .width(let width, let holders): "all of its \(width) places are taken, by \(names(holders))"
        case .threads(let count, let holders):
            "all \(count) threads that it has now are busy, with "
                + (holders.isEmpty ? "bodies of operations that ended" : names(holders))
        case .turn(let ahead): "\(ahead) that are ready come before it"
        case .ownReadiness: "its own isReady is false"
        case .operationSuspended: "it began, and was suspended"
        case .resting(let reason): "\(reason)"
        case .windingDown: "it was cancelled, and its body winds down"
        }
    }
}

extension QueueExplanation.Hold {
    /// Whether the detail names all that there is to name.
    fileprivate var saysWho: Bool { holders.isEmpty || kind == "throttle" }

    /// A key that may not run yet.
    static func throttle(_ key: String, until: OperationInstant, _ runner: ManagedOperation?) -> Self {
        let ends = runner.map { "\($0.displayName) has ended" } ?? "the one that runs under it has ended"
        let moment = until == .distantFuture ? "when \(ends)" : "at \(until)"
        return Self(
            kind: "throttle", detail: "its key \"\(key)\", which may run again \(moment)",
            holders: runner.map { [$0] } ?? [])
    }

    /// A category for which the operation waits: others hold it, or came before; nil if neither is so.
    static func category(_ category: OperationCategory, for operation: ManagedOperation) -> Self? {
        let holders = category.holders.filter { $0 !== operation }
        let queue = operation.core.withLock { $0.host }
        // The operations of other queues wait in lines of their own.
        let ahead = category.waiters.prefix { $0 !== operation }.filter { other in
            let host = other.core.withLock { $0.host }
            return host == nil || host === queue
        }
        if holders.count >= category.limit {
            let line = ahead.isEmpty ? "" : ", for which \(names(of: ahead)) came before it"
            return Self(kind: "category", detail: "category \(category)\(line)", holders: holders)
        }
        guard let first = ahead.first else { return nil }
        var detail = "category \(category), which has room, but \(names(of: ahead)) came before it"
        guard case .categories(let others) = first.admissionStanding,
            let other = others.first(where: { $0 != category && $0.holders.count >= $0.limit })
        else { return Self(kind: "category", detail: detail, holders: []) }
        detail += ", and \(ahead.count == 1 ? "that one" : "the first of these") waits for category \(other)"
        return Self(kind: "category", detail: detail, holders: other.holders)
    }
}

extension QueueExplanation.BarrierWait: CustomStringConvertible {
    /// What it waits for, as a part of a sentence.
    public var description: String {
        isBarrier
            ? "it is a barrier, and \(names(ahead)) came before it"
            : "it came after the barrier \(names(barriers)), and \(names(ahead)) must end first"
    }
}

/// The first few names.
private func names(_ entries: [QueueEntry]) -> String { list(entries.map(\.name)) }

private func names(of operations: [Operation]) -> String { list(operations.map(\.displayName)) }

extension QueueExplanation {
    /// The first few names of children.
    static func names(of children: [ManagedOperation]) -> String { list(children.map(\.displayName)) }
}

private func list(_ names: [String]) -> String {
    let shown = names.prefix(5).sorted().joined(separator: ", ")
    return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
}
