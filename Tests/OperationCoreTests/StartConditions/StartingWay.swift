// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The ways in which an operation can be started.
enum StartingWay: String, CaseIterable, Sendable {
    case byHand, operationQueue, queueManager
}

/// Starts operations in one of the ways and keeps them alive.
final class Starter: Sendable {
    let way: StartingWay
    private let queue = OperationQueue()
    private let manager: QueueManager
    private let started = Locked<[ManagedOperation]>([])

    convenience init(_ way: StartingWay) { self.init(way, width: nil) }

    init(_ way: StartingWay, width: Int?) {
        (self.way, manager) = (way, QueueManager("starter", width: width))
        if let width { queue.maxConcurrentOperationCount = width }
    }

    func start(_ operation: ManagedOperation) throws {
        started.withLock { $0.append(operation) }
        switch way {
        case .byHand: operation.start()
        case .operationQueue: queue.addOperation(operation)
        case .queueManager: try manager.add(operation)
        }
    }
}

/// Waits until a condition that another thread fulfills is true.
///
/// Returns `false` if that takes too long.
func eventually(_ isSo: @Sendable () -> Bool) async -> Bool {
    let start = ContinuousClock.now
    while !isSo() {
        if start.duration(to: .now) > .seconds(20) { return false }
        await Task.yield()
    }
    return true
}
