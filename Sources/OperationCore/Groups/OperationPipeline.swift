// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A series of stages through which elements pass, with an operation for each element at each stage.
///
/// ```swift
/// let pipeline = OperationPipeline(["a", "b", "c"])
///     .stage(width: 4, buffer: 8) { name in TaskOperation { name.utf8.count } }
///     .stage(width: 1) { count in ClosureOperation { count * 2 } }
/// let sizes = try await pipeline.operation().run()
/// ```
///
/// A stage that is faster than the next stage waits for that stage. A stage starts no operation while the number of its
/// running operations and waiting results is equal to the sum of its `width` and `buffer`. Therefore, the widths and
/// the buffers limit the number of elements in progress, regardless of the total number of elements.
///
/// A pipeline is a value that describes work. Each call to ``operation(on:)`` creates a group that iterates over the
/// elements from the beginning.
public struct OperationPipeline<Output: Sendable>: Sendable {
    /// Builds the stages so far, the last of which passes its results to `next`.
    let build: @Sendable (_ next: any PipelineSink<Output>) -> PipelineSource

    /// Creates a pipeline that has no stages yet.
    ///
    /// - Parameter elements: The elements. Each group that you create from the pipeline iterates once over the
    ///   elements.
    public init<Elements: Sequence & Sendable>(_ elements: Elements) where Elements.Element == Output {
        build = { next in
            PipelineSource(PipelineElements(SequenceFeed(elements)), count: elements.underestimatedCount, next)
        }
    }

    /// Creates a pipeline that takes its elements from an asynchronous sequence and has no stages yet.
    ///
    /// The following pipeline receives its elements from an `AsyncStream`:
    ///
    /// ```swift
    /// let (names, continuation) = AsyncStream.makeStream(of: String.self)
    /// let pipeline = OperationPipeline(names).stage(width: 4) { name in
    ///     TaskOperation { name.count }
    /// }
    /// for name in ["a", "bc"] { continuation.yield(name) }
    /// continuation.finish()
    /// print(try await pipeline.operation().run())
    /// ```
    ///
    /// The first stage works on the first elements while the group still reads the sequence. Each group that you create
    /// from the pipeline reads the sequence in one task, as `GroupOperation.map(_:width:on:_:)` does. The task reads at
    /// most `width` elements ahead, where `width` is the width of the first stage, and never more than 64. In addition,
    /// the first stage can hold one element for which it has not created an operation yet. While the group is
    /// suspended, the task requests no further element.
    ///
    /// If the sequence throws an error, the group fails, and ``GroupFailure/sourceError`` contains the error. When the
    /// group is canceled or fails, the task is canceled immediately, and the group does not wait for the task.
    ///
    /// - Parameter elements: The elements. Each group that you create from the pipeline iterates once over the
    ///   elements. If the sequence can be read only once, like an `AsyncStream`, create only one group from the
    ///   pipeline.
    public init<Elements: AsyncSequence & Sendable>(_ elements: Elements) where Elements.Element == Output {
        build = { next in
            let reader = ElementReader(elements, limit: next.width)
            return PipelineSource(PipelineElements(reader), count: 0, reader: reader, next)
        }
    }

    private init(build: @escaping @Sendable (any PipelineSink<Output>) -> PipelineSource) { self.build = build }

    /// Returns a pipeline with an additional stage.
    ///
    /// - Parameters:
    ///   - width: The maximum number of operations in this stage that run at the same time. A value below 1 is treated
    ///     as 1.
    ///   - buffer: The maximum number of results of this stage that wait for the next stage while `width` operations
    ///     run in this stage. The default is `1`, and a negative value is treated as zero.
    ///   - make: The closure that creates an operation from a result of the previous stage, or from an element if this
    ///     is the first stage. The closure is called on any thread, but never on several threads at the same time.
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

    /// Creates a group that passes the elements through the stages and collects the results of the last stage in the
    /// order of the elements.
    ///
    /// If an operation in a stage fails or is canceled, the group fails.
    ///
    /// - Parameter queue: The queue on which the operations run. The default is `nil`, which uses the ``QueueManager``
    ///   that holds the group. If no ``QueueManager`` holds the group, the operations run on a shared queue.
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

/// A receiver of the results of a stage.
protocol PipelineSink<Input>: Sendable {
    associatedtype Input: Sendable

    /// The number of results that it can accept now.
    var room: Int { get }

    /// The number of inputs that it can process at the same time.
    var width: Int { get }

    func put(_ input: Input, index: Int)
}

/// A stage as the group sees it.
protocol PipelineStep: Sendable {
    /// Passes results to the next stage, as far as that has room.
    func passResultsOn()

    /// Returns the next operation, if there is an input and there is room for the result.
    func next() -> (ManagedOperation, index: Int)?
    func take(_ child: ManagedOperation, index: Int)
    func release()
}

/// The stages, and the elements for the first one.
struct PipelineSource: Sendable {
    var stages: [any PipelineStep]
    /// The minimum number of elements.
    let count: Int
    /// The reader of the elements, if they come from an asynchronous sequence.
    let reader: (any SourceReader)?
    /// Passes an element to the first stage, if that has room and there is an element.
    let feed: @Sendable () -> PipelineFeed
    let release: @Sendable () -> Void

    init<Feed>(
        _ elements: PipelineElements<Feed>, count: Int, reader: (any SourceReader)? = nil,
        _ next: any PipelineSink<Feed.Element>
    ) {
        (stages, self.count, self.reader) = ([], count, reader)
        feed = { elements.feed(next) }
        release = { elements.release() }
    }
}

/// The result of an attempt to feed the first stage.
enum PipelineFeed { case fed, notNow, noMore }

/// The elements that have not entered the first stage.
final class PipelineElements<Feed: ElementFeed>: Sendable where Feed.Element: Sendable {
    private let state: Locked<(rest: Feed?, count: Int)>

    init(_ feed: Feed) { state = Locked((feed, 0)) }

    func feed(_ next: any PipelineSink<Feed.Element>) -> PipelineFeed {
        guard next.room > 0 else { return .notNow }
        // The iterator may be user code, so it is removed from the state and used without holding the lock.
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

    func release() {
        state.release { Unchecked(exchange(&$0.rest, with: nil)) }
    }
}

/// One stage, with the inputs that wait and the results that are in progress or wait for the next stage.
final class PipelineStage<Input: Sendable, Value: Sendable, Failure: Error>: PipelineSink, PipelineStep {
    private struct State {
        var inputs = Fifo<(input: Input, index: Int)>()
        var running = 0
        var make: (@Sendable (Input) -> TypedOperation<Value, Failure>)?
        /// Results that wait for room in the next stage.
        var results = Fifo<(value: Value, index: Int)>()
    }

    private let state: Locked<State>
    let width: Int
    /// The maximum number of results that are in progress or wait for the next stage.
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

    /// One if no input waits and fewer than `width` operations are running; otherwise, zero.
    ///
    /// The limit of results is not considered, so one input can wait in this stage.
    var room: Int { state.withLock { $0.inputs.isEmpty && $0.running < width ? 1 : 0 } }

    func put(_ input: Input, index: Int) { state.withLock { $0.inputs.append((input, index)) } }

    func next() -> (ManagedOperation, index: Int)? {
        let taken = state.withLock { state in
            // Each running operation may give a result, for which there must be room.
            guard state.running < width, state.running + state.results.count < limit, let make = state.make,
                let first = state.inputs.popFirst()
            else { return nil as (@Sendable (Input) -> TypedOperation<Value, Failure>, (input: Input, index: Int))? }
            state.running += 1
            return (make, first)
        }
        guard let (make, first) = taken else { return nil }
        return (make(first.input), first.index)
    }

    func passResultsOn() {
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

    func release() {
        state.release { exchange(&$0, with: State()) }
    }
}

/// The results of the last stage.
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

/// The source of a group that runs a pipeline.
///
/// The later stages are checked first, so that elements in progress are completed before others begin.
final class PipelineFlow: GroupSource {
    private let source: PipelineSource
    /// The stage and the element of each tag, including tags that are free, and the free tags.
    private let state = Locked<(tags: [(stage: Int, index: Int)], freeTags: [Int32])>(([], []))

    init(_ source: PipelineSource) { self.source = source }

    func next() -> GroupPull {
        while true {
            // Read the state before checking the stages, because an operation that ends later leads to another call.
            let isIdle = state.withLock { $0.tags.count == $0.freeTags.count }
            for stage in source.stages.reversed() { stage.passResultsOn() }
            for (number, stage) in source.stages.enumerated().reversed() {
                guard let (child, index) = stage.next() else { continue }
                return .child(child, tag: tag(number, index))
            }
            switch source.feed() {
            case .fed: continue
            case .notNow: return .notNow
            case .noMore: return isIdle ? .noMore : .notNow
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

    func release() {
        source.release()
        for stage in source.stages { stage.release() }
    }
}
