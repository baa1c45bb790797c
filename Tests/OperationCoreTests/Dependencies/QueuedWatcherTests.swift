// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The watcher of plain operations that Apple platforms use.
///
/// The watchers here live until the upstream operation has ended: on Linux the queue would free them too early.
@Suite(.timeLimit(.minutes(1)))
struct QueuedWatcherTests {
    @Test func `it calls back once when the operation has ended`() async {
        let ends = EventRecorder<Bool>(), upstream = BlockOperation {}
        let watcher = QueuedWatcher(upstream) { ends.record($0.isFinished) }
        watcher.begin()
        #expect(ends.events == [])
        upstream.start()
        #expect(await ends.events(atLeast: 1) == [true])
        withExtendedLifetime(watcher) {}
    }

    @Test func `it calls back for an operation that had ended before`() async {
        let ends = EventRecorder<Bool>(), upstream = BlockOperation {}
        upstream.start()
        let watcher = QueuedWatcher(upstream) { ends.record($0.isFinished) }
        watcher.begin()
        #expect(await ends.events(atLeast: 1) == [true])
        withExtendedLifetime(watcher) {}
    }

    @Test func `it does not call back when it was released before it began`() {
        let ends = EventRecorder<Bool>(), upstream = BlockOperation {}
        _ = QueuedWatcher(upstream) { ends.record($0.isFinished) }
        upstream.start()
        #expect(ends.events == [])
    }
}
