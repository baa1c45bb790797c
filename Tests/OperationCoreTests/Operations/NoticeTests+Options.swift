// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

// Dependencies and time options that are set too late.
extension NoticeTests {
    @Test func `an invalid dependency added with the inherited method is ignored and reports a notice`() {
        expectNotices([.dependencyRefused], of: "Notice: self") { operation in
            operation.addDependency(operation)
            #expect(operation.dependencies == [])
            #expect(operation.isReady)
        }
        let recorder = NoticeHub.recorder(for: "Notice: cycle")
        let first = HandDriven("Notice: cycle"), second = HandDriven("Other")
        second.addDependency(first)
        first.addDependency(second as Operation)
        #expect(recorder.events.map(\.kind) == [.dependencyRefused])
        #expect(recorder.events.first?.message.contains("Notice: cycle → Other → Notice: cycle") == true)
        #expect(first.dependencies == [])
        #expect(first.isReady)
        expectNotices([.dependencyRefused, .dependencyRefused], of: "Notice: too late") { operation in
            operation.start()
            operation.addDependency(HandDriven())
            operation.addDependency(BlockOperation {} as Operation)
            #expect(operation.dependencies == [])
            operation.finish(withResult: 1)
        }
    }

    @Test func `a time option that is set after the start has no effect and reports a notice`() {
        let clock = ManualClock()
        expectNotices([.timing, .timing, .timing], of: "Notice: timing") { operation in
            operation.start()
            operation.setTimeout(.seconds(1), on: clock)
            operation.startDelay = .seconds(1)
            #expect(operation.timeout == nil)
            #expect(operation.startDelay == .zero)
            #expect(clock.pendingCount == 0)
            operation.finish(withResult: 1)
        }
    }

    @Test func `a deadline can be set after the start without a notice`() {
        let clock = ManualClock()
        expectNotices([], of: "Notice: deadline") { operation in
            operation.clock = clock
            operation.start()
            operation.deadline = OperationInstant(offset: .seconds(1))
            clock.advance(by: .seconds(1))
            #expect(operation.cancellationCause?.code == .deadlinePassed)
        }
    }
}
