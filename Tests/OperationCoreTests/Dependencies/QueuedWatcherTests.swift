// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The watcher of plain operations that Apple platforms use.
///
/// A test that begins a watcher keeps it until the upstream operation has ended, because Linux would free it too early.
@Suite(.timeLimit(.minutes(1)))
struct QueuedWatcherTests {
    @Test(arguments: [false, true])
    func `a watcher calls back once when the operation has ended, even if it had ended before`(early: Bool) async {
        let ends = EventRecorder<Bool>(), upstream = BlockOperation {}
        if early { upstream.start() }
        let watcher = QueuedWatcher(upstream) { ends.record($0.isFinished) }
        watcher.begin()
        if !early {
            #expect(ends.events == [])
            upstream.start()
        }
        #expect(await ends.events(atLeast: 1) == [true])
        withExtendedLifetime(watcher) {}
    }

    @Test func `a watcher that is released before it begins does not call back`() {
        let ends = EventRecorder<Bool>(), upstream = BlockOperation {}
        _ = QueuedWatcher(upstream) { ends.record($0.isFinished) }
        upstream.start()
        #expect(ends.events == [])
    }
}
