// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A command to an operation.
enum ModelCommand: Hashable, Sendable, CustomStringConvertible {
    case start(Int)
    case finish(Int, Int)
    case fail(Int)
    case cancel(Int)
    case depend(Int, on: Int)
    case release(Int, from: Int)
    case setHandlers(Int)
    case observe(Int)
    case drop(Int)

    var description: String {
        switch self {
        case .start(let index): "start \(index)"
        case .finish(let index, let value): "finish \(index) with \(value)"
        case .fail(let index): "fail \(index)"
        case .cancel(let index): "cancel \(index)"
        case .depend(let index, let other): "\(index) depends on \(other)"
        case .release(let index, let other): "\(index) no longer depends on \(other)"
        case .setHandlers(let index): "set handlers of \(index)"
        case .observe(let index): "observe \(index)"
        case .drop(let index): "drop \(index)"
        }
    }
}

extension ModelCommand {
    /// The operations that the command involves.
    var operations: [Int] {
        switch self {
        case .start(let index), .finish(let index, _), .fail(let index), .cancel(let index), .setHandlers(let index),
            .observe(let index), .drop(let index):
            [index]
        case .depend(let index, let other), .release(let index, let other): [index, other]
        }
    }
}

/// The visible state of an operation.
struct ModelView: Hashable, Sendable {
    var state: OperationState = .notStarted
    var isFinished = false
    var ending: ModelEnding?
    var bodyRuns = 0
    /// The outcomes that its handlers and observers received, regardless of the order among operations.
    var told: [ModelEnding] = []
}

enum ModelEnding: Hashable, Sendable {
    case success(Int)
    case failure
    case cancelled
}

enum ModelKind: CaseIterable, Sendable { case atOnce, windsDown, sync }

/// A slow and simple model of operations, with one flag for each fact.
///
/// It was written from the contract and not from the code.
struct OperationModel: Hashable {
    struct One: Hashable {
        var kind: ModelKind
        var isStartAsked = false
        var isBegun = false
        /// Whether its dependencies ended after its start, so that it begins on another thread.
        var hasTurn = false
        /// Whether its running synchronous body has set its result.
        var hasSaid = false
        /// Whether the test released it, so that commands and views no longer include it.
        var isDropped = false
        var ending: ModelEnding?
        var isOutcomeReported = false
        var isEnded = false
        var dependencies: Set<Int> = []
        var handlers = 0
        var observers = 0
        var told: [ModelEnding] = []
        /// The number of enqueued handlers of a result or an error that have not begun.
        var enqueued = 0
        /// Whether it was canceled after its outcome was decided, so that no further handler begins.
        var isSilent = false
        /// Whether its handler must run in the order of the graph.
        var isInOrder: Bool { isBegun && handlers > 0 && !isSilent }
    }

    private(set) var all: [One]

    init(kinds: [ModelKind]) {
        all = kinds.map { One(kind: $0) }
    }

    var views: [ModelView?] {
        all.map { one in
            if one.isDropped { return nil }
            return ModelView(
                state: state(of: one), isFinished: one.isEnded, ending: one.ending, bodyRuns: one.isBegun ? 1 : 0,
                told: one.told)
        }
    }

    mutating func apply(_ command: ModelCommand) {
        guard command.operations.allSatisfy({ !all[$0].isDropped }) else { return }
        switch command {
        case .drop(let index): all[index].isDropped = true
        case .start(let index):
            all[index].isStartAsked = true
            advance(index)
        case .finish(let index, let value): finish(index, .success(value))
        case .fail(let index): finish(index, .failure)
        case .cancel(let index): cancel(index)
        case .depend(let index, let other):
            guard !all[index].isStartAsked, all[index].ending == nil, !reaches(other, index) else { return }
            all[index].dependencies.insert(other)
        case .release(let index, let other):
            all[index].dependencies.remove(other)
            resume(index)
        case .setHandlers(let index):
            guard all[index].isOutcomeReported else { return all[index].handlers = 1 }
            callHandlers(index, 1)
        case .observe(let index):
            guard let ending = all[index].ending, all[index].isOutcomeReported else { return all[index].observers += 1 }
            all[index].told.append(ending)
        }
    }

    private func state(of one: One) -> OperationState {
        guard one.isOutcomeReported else { return one.isBegun ? .executing : .notStarted }
        return one.ending == .cancelled ? .cancelled : .finished
    }

    private func reaches(_ from: Int, _ goal: Int) -> Bool {
        if from == goal { return true }
        if all[from].isEnded { return false }
        return all[from].dependencies.contains { !all[$0].isEnded && reaches($0, goal) }
    }

    private func isReady(_ index: Int) -> Bool {
        all[index].ending == .cancelled || all[index].dependencies.allSatisfy { all[$0].isEnded }
    }

    private mutating func advance(_ index: Int) {
        guard all[index].isStartAsked, !all[index].isBegun, !all[index].isEnded, isReady(index) else { return }
        if all[index].ending != nil {
            notify(index)
            end(index)
            return
        }
        all[index].isBegun = true
    }

    /// Continues an operation that waits, after one of its dependencies ended or was removed.
    private mutating func resume(_ index: Int) {
        guard all[index].isStartAsked, !all[index].isBegun, !all[index].isEnded, isReady(index) else { return }
        if all[index].ending == nil { all[index].hasTurn = true } else { advance(index) }
    }

    /// The steps that happen without a command: bodies and handlers begin, and synchronous bodies continue.
    var steps: [Int] {
        let bodies = all.indices.filter { index in
            all[index].hasTurn || all[index].kind == .sync && all[index].isBegun && !all[index].isEnded
        }
        // An enqueued handler may begin at any time.
        return bodies + all.indices.filter { all[$0].enqueued > 0 }.map { $0 + all.count }
    }

    /// Begins a body or a handler, or lets a synchronous body set its result and then return.
    mutating func step(_ number: Int) {
        if number >= all.count { return beginHandler(number - all.count) }
        let index = number
        if all[index].hasTurn {
            all[index].hasTurn = false
            all[index].isBegun = true
            return
        }
        guard all[index].hasSaid else {
            all[index].hasSaid = true
            if all[index].ending == nil { all[index].ending = .success(index) }
            return
        }
        notify(index)
        end(index)
    }

    private mutating func finish(_ index: Int, _ ending: ModelEnding) {
        if all[index].ending != nil {
            let isWindingDown = all[index].kind == .windsDown && all[index].ending == .cancelled && all[index].isBegun
            if isWindingDown { end(index) }
            return
        }
        all[index].ending = ending
        if all[index].hasTurn {
            all[index].hasTurn = false
        } else {
            guard all[index].isBegun, all[index].kind != .sync else { return }
        }
        notify(index)
        end(index)
    }

    private mutating func cancel(_ index: Int) {
        guard all[index].ending == nil else {
            if all[index].ending != .cancelled { (all[index].isSilent, all[index].enqueued) = (true, 0) }
            return
        }
        all[index].ending = .cancelled
        all[index].hasTurn = false
        notify(index)
        if all[index].isBegun {
            if all[index].kind == .atOnce { end(index) }
        } else if all[index].isStartAsked {
            end(index)
        }
    }

    private mutating func notify(_ index: Int) {
        guard let ending = all[index].ending, !all[index].isOutcomeReported else { return }
        all[index].isOutcomeReported = true
        all[index].told += Array(repeating: ending, count: all[index].observers)
        callHandlers(index, all[index].handlers)
    }

    private mutating func callHandlers(_ index: Int, _ count: Int) {
        guard let ending = all[index].ending, !all[index].isSilent else { return }
        if ending == .cancelled {
            all[index].told += Array(repeating: ending, count: count)
        } else {
            all[index].enqueued += count
        }
    }

    private mutating func beginHandler(_ index: Int) {
        guard let ending = all[index].ending else { return }
        all[index].enqueued -= 1
        all[index].told.append(ending)
    }

    private mutating func end(_ index: Int) {
        guard !all[index].isEnded else { return }
        all[index].isEnded = true
        for other in all.indices where all[other].dependencies.contains(index) { resume(other) }
    }
}
