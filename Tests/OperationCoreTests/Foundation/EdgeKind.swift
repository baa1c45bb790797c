// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

/// The kinds of the two operations of a dependency.
///
/// Dependencies between two plain operations are not tested, because only Foundation handles them.
enum EdgeKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case oursOnOurs = "ours waits for ours"
    case foreignOnOurs = "foreign waits for ours"
    case oursOnForeign = "ours waits for foreign"

    var testDescription: String { rawValue }

    /// Creates an operation that the test ends, even after a cancellation.
    func makeUpstream(_ body: (@Sendable () -> Void)? = nil) -> Upstream {
        self == .oursOnForeign
            ? .foreign(ForeignHeldWork(body)) : .ours(HeldWork(windsDown: true) { _ in body?() })
    }

    /// Creates an operation that ends as soon as it runs.
    func makeDownstream(trace: Trace? = nil, _ body: (@Sendable () -> Void)? = nil) -> Downstream {
        self == .foreignOnOurs
            ? .foreign(ForeignQuickWork(trace: trace, body)) : .ours(QuickWork(trace: trace) { _ in body?() })
    }
}

enum Upstream: Sendable {
    case ours(HeldWork)
    case foreign(ForeignHeldWork)

    var operation: Operation {
        switch self {
        case .ours(let operation): operation
        case .foreign(let operation): operation
        }
    }

    func end() {
        switch self {
        case .ours(let operation): operation.finish(withResult: 1)
        case .foreign(let operation): operation.end()
        }
    }
}

enum Downstream: Sendable {
    case ours(QuickWork)
    case foreign(ForeignQuickWork)

    var operation: Operation {
        switch self {
        case .ours(let operation): operation
        case .foreign(let operation): operation
        }
    }

    // A plain operation never depends on another plain operation here.

    func addDependency(_ upstream: Upstream) {
        switch (self, upstream) {
        case (.ours(let operation), _): operation.addDependency(upstream.operation)
        case (.foreign(let operation), .ours(let upstream)): operation.addDependency(upstream)
        case (.foreign, .foreign): break
        }
    }

    func removeDependency(_ upstream: Upstream) {
        switch (self, upstream) {
        case (.ours(let operation), _): operation.removeDependency(upstream.operation)
        case (.foreign(let operation), .ours(let upstream)): operation.removeDependency(upstream)
        case (.foreign, .foreign): break
        }
    }
}
