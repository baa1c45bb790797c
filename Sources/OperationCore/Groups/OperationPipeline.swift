// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Stages through which elements pass, each made into an operation at every stage.
///
/// ```swift
/// let pipeline = OperationPipeline(["a", "b", "c"])
///     .stage(width: 4, buffer: 8) { name in TaskOperation { name.utf8.count } }
///     .stage(width: 1) { count in ClosureOperation { count * 2 } }
/// let sizes = try await pipeline.operation().run()
/// ```
///
/// A stage that is faster than the next one waits for it: no more than its `buffer` of results lie between the two. So
/// what is under way at a time is bounded by the widths and the buffers, however many elements there are.
///
/// It is a value, and describes work: each ``operation(on:)`` goes through the elements anew.
public struct OperationPipeline<Output: Sendable>: Sendable {
    /// Makes the last of the stages so far, which hands its results on.
    let build: @Sendable (_ next: any PipelineSink<Output>) -> PipelineSource

    /// Makes a pipeline without a stage.
    ///
    /// - Parameter elements: What to go through, once for each operation, in order.
    public init<Elements: Sequence & Sendable>(_ elements: Elements) where Elements.Element == Output {
        build = { next in
            PipelineSource(PipelineElements(SequenceFeed(elements)), count: elements.underestimatedCount, next)
        }
    }

    /// Makes a pipeline without a stage, whose elements come from an asynchronous sequence.
    ///
    /// The first stage works on the first elements while the sequence is still read:
    ///
    /// ```swift
    /// let (names, continuation) = AsyncStream.makeStream(of: String.self)
    /// let pipeline = OperationPipeline(names).stage(width: 4) { name in TaskOperation { name.count } }
    /// for name in ["a", "bc"] { continuation.yield(name) }
    /// continuation.finish()
    /// print(try await pipeline.operation().run())
    /// ```
    ///
    /// Each operation of the pipeline reads the sequence in one task, as `GroupOperation.map(_:width:on:_:)` does. It reads at
    /// most as many elements ahead as the first stage is wide (and never more than 64). One more element may already wait for
    /// the first stage. While the group is suspended, the task asks for no further element. An error of the sequence fails
    /// the group, with the error in ``GroupFailure/sourceError``. When the group is canceled or fails, the task is canceled
    /// immediately, and the group does not wait for it.
    ///
    /// - Parameter elements: What to go through, once for each operation, in order. A sequence that can be read only once,
    ///   such as an `AsyncStream`, is for a pipeline of which you make one operation.
    public init<Elements: AsyncSequence & Sendable>(_ elements: Elements) where Elements.Element == Output {
        build = { next in
            let reader = ElementReader(elements, limit: next.width)
            return PipelineSource(PipelineElements(reader), count: 0, reader: reader, next)
        }
    }

    private init(build: @escaping @Sendable (any PipelineSink<Output>) -> PipelineSource) { self.build = build }

    /// Adds a stage.
    ///
    /// - Parameters:
    ///   - width: How many of its operations may run at once; below one, it is one.
    ///   - buffer: How many of its results may wait for the next stage; below none, it is none.
    ///   - make: Makes an operation of a result of the stage before. Called on any thread, never twice at once.
    public func stage<Value, Failure>(
        width: Int, buffer: Int = 1, _ make: @escaping @Sendable (Output) -> TypedOperation<Value, Failure>
    ) -> OperationPipeline<Value> {
        let build = build
        return OperationPipeline<Value> { next in
            let stage = PipelineStage(width: max(width, 1), buffer: max(buffer, 0), next: next, make)
            var source = build(stage)
            source.stages.append(stage)
            return source
        }
    }

    /// Makes a group that passes the elements through the stages, and gives the last one's results in their order.
    ///
    /// The first operation that gives no result fails it.
    ///
    /// - Parameter queue: Where the operations run; nil for the queue that holds the group.
    public func operation(on queue: QueueManager? = nil) -> GroupOperation<[Output], GroupFailure> {
        let results = PipelineResults<Output>()
        let source = build(results)
        let machine = GroupMachine(policy: .failFast, hasSource: true)
        let group = GroupOperation<[Output], GroupFailure>(
            GroupEngine(machine, queue: queue, source: PipelineFlow(source), reader: source.reader)
        ) { _ in results.take() }
        group.expect(totalWeight: Double(source.count) * Double(source.stages.count))
        return group
    }
}

/// What takes the results of a stage.
protocol PipelineSink<Input>: Sendable {
    associatedtype Input: Sendable

    /// How many it would take now.
    var room: Int { get }

    /// How many it works on at the same time.
    var width: Int { get }

    func put(_ input: Input, index: Int)
}

/// A stage as the group sees it.
protocol PipelineStep: Sendable {
    /// Hands results to the stage after as far as that has room.
    func handOn()

    /// The next operation, if there is an input and the stage after has room for the result.
    func next() -> (ManagedOperation, index: Int)?
    func take(_ child: ManagedOperation, index: Int)
    func letGo()
}

/// The stages, and what feeds the first.
struct PipelineSource: Sendable {
    var stages: [any PipelineStep]
    /// How many elements there are at least.
    let count: Int
    /// What reads the elements, if they come from an asynchronous sequence.
    let reader: (any SourceReader)?
    /// Gives the first stage an element, if it has room and there is one.
    let feed: @Sendable () -> PipelineFeed
    let letGo: @Sendable () -> Void

    init<Feed>(
        _ elements: PipelineElements<Feed>, count: Int, reader: (any SourceReader)? = nil,
        _ next: any PipelineSink<Feed.Element>
    ) {
        (stages, self.count, self.reader) = ([], count, reader)
        feed = { elements.feed(next) }
        letGo = { elements.letGo() }
    }
}

/// What came of feeding the first stage.
enum PipelineFeed { case fed, notNow, noMore }

/// The elements that have not begun.
final class PipelineElements<Feed: ElementFeed>: Sendable where Feed.Element: Sendable {
    private struct State {
        var rest: Feed?
        var count = 0
    }

    private let state: Locked<State>

    init(_ feed: Feed) { state = Locked(State(rest: feed)) }

    func feed(_ next: any PipelineSink<Feed.Element>) -> PipelineFeed {
        guard next.room > 0 else { return .notNow }
        // The iterator is the user's: it is taken out, and used outside the lock.
        let (feed, index) = state.withLock { Unchecked((exchange(&$0.rest, with: nil), $0.count)) }.value
        guard var rest = feed else { return .noMore }
        guard let element = rest.next() else {
            if rest.isOver { return .noMore }
            let left = Unchecked(rest)
            state.withLock { $0.rest = left.value }
            return .notNow
        }
        let left = Unchecked(rest)
        state.withLock { state in
            state.rest = left.value
            state.count += 1
        }
        next.put(element, index: index)
        return .fed
    }

    func letGo() {
        let rest = state.withLock { Unchecked(exchange(&$0.rest, with: nil)) }
        withExtendedLifetime(rest) {}
    }
}

/// One stage: inputs that wait, and how many of its results are under way or wait further on.
final class PipelineStage<Input: Sendable, Value: Sendable, Failure: Error>: PipelineSink, PipelineStep {
    private struct State {
        var inputs = Fifo<(input: Input, index: Int)>()
        var running = 0
        var make: (@Sendable (Input) -> TypedOperation<Value, Failure>)?
        /// Results that came, and wait for room further on.
        var results = Fifo<(value: Value, index: Int)>()
    }

    private let state: Locked<State>
    let width: Int
    /// How many results may be under way, or wait for the next stage.
    private let limit: Int
    private let following: any PipelineSink<Value>

    init(
        width: Int, buffer: Int, next: any PipelineSink<Value>,
        _ make: @escaping @Sendable (Input) -> TypedOperation<Value, Failure>
    ) {
        state = Locked(State(make: make))
        let (sum, isTooMuch) = width.addingReportingOverflow(buffer)
        (self.width, limit, following) = (width, isTooMuch ? .max : sum, next)
    }

    /// An input waits for a place of this stage, and nowhere else: it counts in the buffer of the stage before.
    var room: Int { state.withLock { $0.inputs.isEmpty && $0.running < width ? 1 : 0 } }

    func put(_ input: Input, index: Int) { state.withLock { $0.inputs.append((input, index)) } }

    func next() -> (ManagedOperation, index: Int)? {
        let taken = state.withLock { state in
            // Each that runs may give a result for which there must be room.
            guard state.running < width, state.running + state.results.count < limit, let make = state.make,
                let first = state.inputs.popFirst()
            else { return nil as (@Sendable (Input) -> TypedOperation<Value, Failure>, (input: Input, index: Int))? }
            state.running += 1
            return (make, first)
        }
        guard let (make, first) = taken else { return nil }
        return (make(first.input), first.index)
    }

    func handOn() {
        while following.room > 0 {
            guard let first = state.withLock({ $0.results.popFirst() }) else { return }
            following.put(first.value, index: first.index)
        }
    }

    func take(_ child: ManagedOperation, index: Int) {
        let result = (child as? TypedOperation<Value, Failure>)?.outcomeInGroup?.result
        state.withLock { state in
            state.running -= 1
            if let result { state.results.append((result, index)) }
        }
    }

    func letGo() {
        let left = state.withLock { exchange(&$0, with: State()) }
        withExtendedLifetime(left) {}
    }
}

/// What came out at the end.
final class PipelineResults<Value: Sendable>: PipelineSink {
    private let results = Locked<[Int: Value]>([:])

    var room: Int { .max }
    var width: Int { .max }

    func put(_ input: Value, index: Int) { results.withLock { $0[index] = input } }

    func take() -> [Value] {
        let all = results.withLock { exchange(&$0, with: [:]) }
        return all.sorted { $0.key < $1.key }.map(\.value)
    }
}

/// All stages as the source of a group: the later ones come first, so that what began is finished.
final class PipelineFlow: GroupSource {
    private struct State {
        /// Which stage and element each tag stands for, and tags that are free.
        var tags: [(stage: Int, index: Int)] = []
        var freeTags: [Int32] = []
    }

    private let source: PipelineSource
    private let state = Locked(State())

    init(_ source: PipelineSource) { self.source = source }

    func next() -> GroupPull {
        while true {
            // Before the stages are asked: what ends later asks again.
            let isIdle = state.withLock { $0.tags.count == $0.freeTags.count }
            for stage in source.stages.reversed() { stage.handOn() }
            for (number, stage) in source.stages.enumerated().reversed() {
                guard let (child, index) = stage.next() else { continue }
                return .child(child, tag: tag(number, index))
            }
            switch source.feed() {
            case .fed: continue
            case .notNow: return .nothingNow
            case .noMore: return isIdle ? .nothingMore : .nothingNow
            }
        }
    }

    private func tag(_ stage: Int, _ index: Int) -> Int32 {
        state.withLock { state in
            if let tag = state.freeTags.popLast() {
                state.tags[Int(tag)] = (stage, index)
                return tag
            }
            state.tags.append((stage, index))
            return Int32(truncatingIfNeeded: state.tags.count - 1)
        }
    }

    func take(_ child: ManagedOperation, tag: Int32) {
        let place = state.withLock { $0.tags[Int(tag)] }
        source.stages[place.stage].take(child, index: place.index)
        state.withLock { $0.freeTags.append(tag) }
    }

    func describe(tag: Int32) -> String? {
        let place = state.withLock { $0.tags[Int(tag)] }
        return "element \(place.index) in stage \(place.stage)"
    }

    func letGo() {
        source.letGo()
        for stage in source.stages { stage.letGo() }
    }
}
