// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How the brakes of a task are reached, whosever it is.
enum BrakeLine: Sendable {
    case ordered(any OrderedTask)
    case relayed(BrakeRelay)

    init(_ task: any NetworkTask) {
        if let task = task as? any OrderedTask { self = .ordered(task) } else { self = .relayed(BrakeRelay(task)) }
    }

    func pass(_ order: BrakeOrder) {
        switch self {
        case .ordered(let task): task.obey(order)
        case .relayed(let relay): relay.pass(order)
        }
    }
}
