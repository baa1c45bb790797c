// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Testing

@testable import TerminalDisplay

@Suite("Formatting of quantities")
struct QuantityTextTests {
    @Test(
        arguments: [
            (-5, "0 B"), (0, "0 B"), (999, "999 B"), (1_000, "1.00 kB"), (1_234, "1.23 kB"), (9_994, "9.99 kB"),
            (9_995, "10.0 kB"), (99_949, "99.9 kB"), (99_950, "100 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"),
            (1_073_741_824, "1.07 GB"), (Int64.max, "9.22 EB"),
        ] as [(Int64, String)])
    func `byte counts have three digits`(count: Int64, text: String) {
        #expect(QuantityText.bytes(count) == text)
        #expect(text.count <= 7)
    }

    @Test func `any rate can be formatted`() {
        #expect(QuantityText.rate(1_500_000) == "1.50 MB/s")
        #expect(QuantityText.rate(.nan) == "0 B/s")
        #expect(QuantityText.rate(.infinity) == "0 B/s")
        #expect(QuantityText.rate(-1) == "0 B/s")
        #expect(QuantityText.rate(1e30).hasSuffix("EB/s"))
    }

    @Test(
        arguments: [
            (.zero, "0:00"), (.milliseconds(1), "0:01"), (.seconds(59), "0:59"), (.seconds(60), "1:00"),
            (.seconds(3_599), "59:59"), (.seconds(3_723), "1:02:03"), (.seconds(359_999), "99:59:59"),
            (.seconds(360_000), "4 d"), (.seconds(-4), "0:00"), (.seconds(Int64.max), "∞"),
        ] as [(Duration, String)])
    func `times are rounded up`(duration: Duration, text: String) {
        #expect(QuantityText.time(duration) == text)
    }

    @Test func `elapsed times have one decimal below ten seconds`() {
        #expect(QuantityText.elapsed(.milliseconds(340)) == "0.3 s")
        #expect(QuantityText.elapsed(.milliseconds(9_990)) == "9.9 s")
        #expect(QuantityText.elapsed(.seconds(10)) == "10 s")
        #expect(QuantityText.elapsed(.seconds(125)) == "2:05")
    }

    @Test func `100% is shown only for a complete transfer`() {
        #expect(QuantityText.percent(999_999, of: 1_000_000) == "99%")
        #expect(QuantityText.percent(1_000_000, of: 1_000_000) == "100%")
        #expect(QuantityText.percent(0, of: 0) == "100%")
        #expect(QuantityText.percent(-3, of: 10) == "0%")
    }
}
