// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// A player for the steps of a response, which returns the next action for each request of the connection.
///
/// The player knows nothing of sockets and time.
struct ScriptPlayer {
    enum Action {
        /// Send these bytes, and then request the next action.
        case send(ArraySlice<UInt8>)
        /// Send these bytes of a file, and then request the next action.
        case sendFile(path: String, offset: Int, count: Int)
        /// Request the next action when the gate is open.
        case awaitGate(Gate)
        /// Request the next action after this time.
        case awaitTime(Duration)
        /// Request the next action when more of the body has arrived.
        case awaitBody
        /// Request no more actions.
        case stall
        /// Read at this pace from now on, and request the next action immediately.
        case pace(LoopbackStep.Pace)
        /// Call this closure, and request the next action immediately.
        case call(@Sendable () -> Void)
        /// End the connection, and request no more actions.
        case end(LoopbackEnding)
        /// The response is complete.
        case done(closes: Bool)
    }

    private var steps: ArraySlice<LoopbackStep>
    private let omitsContent: Bool
    private var closes: Bool
    private var cut: (rest: Int, ending: LoopbackEnding)?
    /// The rest of a step that has begun.
    private var rest: Rest?
    private var echoed: ArraySlice<UInt8> = []
    private(set) var isEchoing = false

    private enum Rest {
        case repeating(block: [UInt8], position: Int, count: Int?)
        case file(path: String, offset: Int, count: Int)
    }

    private static let blockSize = 1 << 16

    init(_ answer: LoopbackAnswer, isHead: Bool, closes: Bool) {
        steps = answer.steps[...]
        omitsContent = isHead
        self.closes = closes || answer.closes
        cut = answer.cut.map { ($0.offset, $0.ending) }
        isEchoing = !isHead && answer.steps.contains { if case .echo = $0.kind { true } else { false } }
    }

    /// The number of bytes that wait to be echoed.
    var echoCount: Int { echoed.count }

    /// Stores bytes of the request's body for the step that echoes them.
    mutating func echo(_ bytes: ArraySlice<UInt8>) {
        if isEchoing { echoed += bytes }
    }

    /// Returns the next action, depending on how much of the request's body has arrived.
    mutating func next(bodyCount: Int, bodyIsComplete: Bool) -> Action {
        if let cut, cut.rest == 0 { return .end(cut.ending) }
        // Consecutive small pieces are sent together.
        var gathered: [UInt8] = []
        while true {
            if let rest {
                guard gathered.isEmpty else { return limited(gathered[...]) }
                return go(on: rest)
            }
            guard let step = steps.first else {
                if !gathered.isEmpty { return limited(gathered[...]) }
                if let cut { return .end(cut.ending) }
                return .done(closes: closes)
            }
            switch step.kind {
            case .head(let head):
                if head.closes || (!head.delimitsBody && !omitsContent) { closes = true }
                gathered += head.bytes
            case .bytes(let bytes): gathered += bytes
            case .content(let bytes): if !omitsContent { gathered += bytes }
            case .repeating(let bytes, let start, let count):
                let block = Self.block(of: bytes, count)
                if !omitsContent, !block.isEmpty { rest = .repeating(block: block, position: start, count: count) }
            case .file(let path, let offset, let count):
                // The connection resets if it gets no bytes of the file.
                if !omitsContent, count > 0 { rest = .file(path: path, offset: offset, count: count) }
            case .drip(let bytes, let size, let interval):
                gathered += bytes.prefix(size)
                let left = bytes.dropFirst(size)
                if left.isEmpty { break }
                steps = [LoopbackStep(kind: .drip(left, size: size, every: interval))] + steps.dropFirst()
                steps = [.pause(interval)] + steps
                continue
            default:
                guard gathered.isEmpty else { return limited(gathered[...]) }
                if let action = wait(for: step, bodyCount: bodyCount, bodyIsComplete: bodyIsComplete) { return action }
            }
            steps.removeFirst()
        }
    }

    /// Returns the action of a step that sends no data itself, or nil if the step is finished.
    private mutating func wait(for step: LoopbackStep, bodyCount: Int, bodyIsComplete: Bool) -> Action? {
        switch step.kind {
        case .gate(let gate):
            if gate.isOpen { return nil }
            return .awaitGate(gate)
        case .pause(let duration):
            steps.removeFirst()
            return .awaitTime(duration)
        case .forever: return .stall
        case .body(let count):
            return bodyIsComplete || count.map { bodyCount >= $0 } == true ? nil : .awaitBody
        case .echo: return omitsContent ? nil : sendEcho(bodyIsComplete: bodyIsComplete)
        case .pace(let pace):
            steps.removeFirst()
            return .pace(pace)
        case .call(let body):
            steps.removeFirst()
            return .call(body)
        case .end(let ending): return .end(ending)
        default: return nil
        }
    }

    private mutating func sendEcho(bodyIsComplete: Bool) -> Action {
        if !echoed.isEmpty {
            let size = Array("\(String(echoed.count, radix: 16))\r\n".utf8)
            let chunk = size + echoed + [13, 10]
            echoed = []
            return limited(chunk[...])
        }
        guard bodyIsComplete else { return .awaitBody }
        steps.removeFirst()
        isEchoing = false
        return limited(Array("0\r\n\r\n".utf8)[...])
    }

    private mutating func go(on rest: Rest) -> Action {
        switch rest {
        case .repeating(let block, let position, let count):
            let size = min(block.count - position, count ?? .max)
            let left = count.map { $0 - size }
            let next = position + size == block.count ? 0 : position + size
            self.rest = left == 0 ? nil : .repeating(block: block, position: next, count: left)
            return limited(block[position..<(position + size)])
        case .file(let path, let offset, let count):
            self.rest = nil
            var size = count
            if let cut { size = min(size, cut.rest) }
            cut?.rest -= size
            return .sendFile(path: path, offset: offset, count: size)
        }
    }

    private mutating func limited(_ bytes: ArraySlice<UInt8>) -> Action {
        guard let rest = cut?.rest else { return .send(bytes) }
        let allowed = bytes.prefix(rest)
        cut?.rest = rest - allowed.count
        return .send(allowed)
    }

    /// Returns the bytes repeated as often as they fit into a block, so that each sent piece is large.
    private static func block(of bytes: [UInt8], _ count: Int?) -> [UInt8] {
        // Repeating an empty array has no effect.
        guard !bytes.isEmpty else { return [] }
        var block = bytes
        while block.count < min(blockSize, count ?? .max) { block += bytes }
        return block
    }
}
