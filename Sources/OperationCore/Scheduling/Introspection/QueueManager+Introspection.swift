// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// The entries of the queue.
extension QueueManager {
    /// The number of operations and closures in each state, and the number that have ended with each outcome.
    ///
    /// Reading this property takes about the same time regardless of how many operations and closures the queue
    /// contains.
    public var counts: QueueCounts { engine.counts }

    /// The current operations, closures, counts and settings of the queue.
    ///
    /// The more operations and closures the queue contains, the longer the read takes, and the queue starts no
    /// operations during the read. If you need only numbers, read ``counts``.
    public var snapshot: QueueSnapshot { engine.snapshot }

    /// An asynchronous sequence that begins with the current state of the queue and continues with its changes.
    ///
    /// The sequence stores up to 1,024 unread events.
    ///
    /// ```swift
    /// func follow(_ queue: QueueManager) async {
    ///     for await update in queue.events {
    ///         switch update {
    ///         case .snapshot(let state): print("begins with \(state)")
    ///         case .event(let event): print(event)
    ///         case .missed(let count, let state):
    ///             print("\(count) events were dropped; the state is \(state)")
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// The sequence contains the events in the order of the changes and numbers them without gaps. You can apply events
    /// to a snapshot with ``QueueSnapshot/apply(_:)``. If a reader is too slow, the reader receives the number of
    /// missed events and a new snapshot. The next events follow this snapshot.
    ///
    /// Neither the sequence nor an iterator keeps the queue alive. A loop over the sequence ends when the queue is
    /// freed and all of its operations and closures have ended, or when the loop's task is canceled.
    public var events: some AsyncSequence<QueueUpdate, Never> & Sendable { events(keeping: 1024) }

    /// Returns an asynchronous sequence that begins with the current state of the queue and continues with its changes.
    ///
    /// - Parameter capacity: The maximum number of unread events that the sequence stores, including their operations.
    ///   If a slow reader exceeds this number, the stored events are dropped, and the reader continues with a new
    ///   snapshot. A value below one is treated as one.
    package func events(keeping capacity: Int) -> Subscriptions<QueueUpdate> {
        let engine = WeakReference(engine)
        return Subscriptions {
            let feed = QueueFeed(capacity: capacity)
            let id = engine.object?.subscribe(feed)
            // The queue no longer exists.
            if id == nil { feed.end(with: nil) }
            return Subscription(
                next: {
                    await feed.next {
                        guard let engine = engine.object else { return false }
                        engine.refresh(feed)
                        return true
                    }
                }, cancel: { if let id { engine.object?.unsubscribe(id) } })
        }
    }
}

// Explanations.
extension QueueManager {
    /// Returns an explanation of why an operation does not run.
    ///
    /// ```swift
    /// let queue = QueueManager("uploads")
    /// let prepare = ClosureOperation { 1 }, upload = ClosureOperation { 2 }
    /// upload.addDependency(prepare)
    /// try queue.add(upload)
    /// print(queue.explain(upload))
    /// // ClosureOperation<Int, Never> waits in queue uploads:
    /// // it depends on ClosureOperation<Int, Never>
    /// // (not started, and in no queue that would start it).
    /// ```
    ///
    /// The explanation includes the dependencies and limits for which the operation waits, and the operations that
    /// occupy the slots. The operation may be of any kind, inside or outside this queue. The more operations and
    /// closures the queue contains, the longer the call takes, and the queue starts no operations during the call.
    /// Therefore, call this method only to investigate a problem, and not routinely for each operation.
    ///
    /// - Parameter operation: The operation whose state the method explains.
    /// - Returns: The explanation as text, which describes the state at the time of the call.
    public func explain(_ operation: Operation) -> String { engine.explain(operation) }
}

// Progress.
extension QueueManager {
    /// The progress of the queue, which counts each operation or closure that was added to the queue as one unit of
    /// work.
    ///
    /// The number of completed units and the total number only increase. The fraction can decrease when you add
    /// operations or closures. Canceling the progress cancels all unfinished operations and drops all closures that
    /// have not begun. After the first access, the progress is updated on a global queue and on the threads that change
    /// the queue. Observers of the progress are called on these threads.
    public var progress: Progress { engine.progress }
}

/// An observer that updates a `Progress` when a queue changes.
///
/// Setting the numbers may call observers of the progress, so this is done outside the queue's lock by one thread at a
/// time. A second thread only requests another round, so that no number ever decreases.
package final class QueueProgressMeter: QueueFollower, Sendable {
    let progress: Progress
    private let counts: @Sendable () -> QueueCounts?
    private let publishing = Locked(RepeatFlag())

    /// Creates a meter with a closure that returns the counts to publish, or `nil` if the queue no longer exists.
    package init(counts: @escaping @Sendable () -> QueueCounts?) {
        // The progress must not become a child of the current progress of this thread.
        progress = Progress(parent: nil)
        progress.isPausable = false
        self.counts = counts
    }

    convenience init(_ engine: QueueEngine) {
        let engine = WeakReference(engine)
        self.init(counts: { engine.object?.counts })
        progress.cancellationHandler = {
            engine.object?.cancelAll(because: .requested("The progress of the queue was canceled."))
        }
    }

    func record(_ change: QueueJournal.Change, _ journal: QueueJournal) {
        switch change {
        case .placed(_, _, from: .entering), .ended: break
        case .placed, .rested, .wentOn, .width, .suspension, .closing: return
        }
        if requestPublication() { journal.later { [self] in publishOnce() } }
    }

    /// Records that the numbers changed, and returns whether the caller must publish them because no other thread does.
    package func requestPublication() -> Bool { publishing.withLock { $0.request() } }

    /// Publishes the numbers, unless another thread is publishing them and will do so again.
    package func publish() {
        if requestPublication() { publishOnce() }
    }

    private func publishOnce() {
        publishing.withLock { $0.startRound() }
        if let counts = counts() { show(counts) }
        // The next round is for another thread, because under a flood of changes this one would never end.
        if publishing.withLock({ $0.finishRound() }) { DispatchQueue.global().async { [self] in publishOnce() } }
    }

    /// Sets the total first, so that the completed number never exceeds it.
    private func show(_ counts: QueueCounts) {
        let added = Int64(counts.added), ended = Int64(counts.ended)
        if progress.totalUnitCount != added { progress.totalUnitCount = added }
        if progress.completedUnitCount != ended { progress.completedUnitCount = ended }
    }
}

extension QueueEngine {
    var progress: Progress {
        if let present = state.withLock({ $0.meter }) { return present.progress }
        let made = QueueProgressMeter(self)
        let meter = applyAfterReclaiming { state, _ in
            if let present = state.meter { return present }
            state.meter = made
            state.machine.add(made)
            return made
        }
        meter.publish()
        return meter.progress
    }
}
