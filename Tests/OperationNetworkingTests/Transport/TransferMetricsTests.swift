// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

struct TransferMetricsTests {
    /// The times that are set, and the times that the metrics then return.
    private static let times: [(set: Duration?, returned: Duration?)] = [
        (nil, nil), (.zero, .zero), (.nanoseconds(1), .nanoseconds(1)), (.nanoseconds(-1), .nanoseconds(-1)),
        (.nanoseconds(999), .nanoseconds(999)), (.seconds(-3), .seconds(-3)), (.seconds(86_400), .seconds(86_400)),
        // A part of a nanosecond is dropped.
        (Duration(secondsComponent: 1, attosecondsComponent: 1_999_999_999), .nanoseconds(1_000_000_001)),
        (.nanoseconds(Int64.max), .nanoseconds(Int64.max)), (.seconds(Int64.max), .nanoseconds(Int64.max)),
        (.nanoseconds(Int64.min), .nanoseconds(Int64.min)), (.seconds(Int64.min), .nanoseconds(Int64.min)),
    ]

    @Test(arguments: times)
    func `each time is stored in nanoseconds, and a time out of range becomes the nearest value`(
        time: Duration?, returned: Duration?
    ) {
        let properties: [WritableKeyPath<TransferMetrics, Duration?>] = [
            \.slotGranted, \.nameResolved, \.connected, \.secured, \.requestBegan, \.firstByte, \.ended,
        ]
        for property in properties {
            var metrics = TransferMetrics()
            metrics[keyPath: property] = time
            #expect(metrics[keyPath: property] == returned)
            for other in properties where other != property { #expect(metrics[keyPath: other] == nil) }
            #expect((metrics == TransferMetrics()) == (time == nil))
            metrics[keyPath: property] = nil
            #expect(metrics == TransferMetrics())
        }
    }

    @Test func `the duration of pauses is zero at first and saturates`() {
        var metrics = TransferMetrics()
        #expect(metrics.paused == .zero)
        for (time, returned) in Self.times {
            metrics.paused = time ?? .zero
            #expect(metrics.paused == returned ?? .zero)
        }
    }
}
