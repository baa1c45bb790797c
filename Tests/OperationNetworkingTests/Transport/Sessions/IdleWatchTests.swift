// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct IdleWatchTests {
    @Test func `idle time counts from the first check without work`() {
        var watch = IdleWatch(lifetime: .nanoseconds(100))
        #expect(watch.due == nil)
        let first = watch.look(at: 1_000)
        #expect(!first && watch.due == 1_100)
        let early = watch.look(at: 1_099)
        #expect(!early)
        watch.wake()
        #expect(watch.due == nil)
        let anew = watch.look(at: 1_100)
        #expect(!anew && watch.due == 1_200)
        let over = watch.look(at: 1_200)
        #expect(over && watch.due == nil)
    }

    @Test func `an endless lifetime does not overflow, and a negative one ends immediately`() {
        var endless = IdleWatch(lifetime: .seconds(Int64.max))
        _ = endless.look(at: .max >> 1)
        #expect(endless.due.map { $0 > .max >> 1 } == true)
        var none = IdleWatch(lifetime: .seconds(-1))
        _ = none.look(at: 5)
        let over = none.look(at: 5)
        #expect(over)
    }
}
