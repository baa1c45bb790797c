// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheFreshnessTests {
    private func freshness(_ headers: HeaderFields, status: Int = 200, delay: Double = 0, after: Double = 0) throws
        -> CacheFreshness
    {
        CacheFreshness(try CacheSamples.response(status, headers, delay: delay), now: CacheSamples.now + after)
    }

    @Test func `the lifetime is max-age, else Expires minus Date, else a tenth of the time since Last-Modified`()
        throws
    {
        let date = CacheSamples.date
        #expect(try freshness(["Cache-Control": "max-age=60", "Expires": date(900)]).lifetime == 60)
        #expect(try freshness(["Date": date(-10), "Expires": date(50)]).lifetime == 60)
        #expect(try freshness(["Expires": date(50)]).lifetime == 50)
        #expect(try freshness(["Expires": "0", "Last-Modified": date(-1000)]).lifetime == 0)
        #expect(try freshness(["Expires": date(-50)]).lifetime == 0)
        #expect(try freshness(["Last-Modified": date(-1000)]).lifetime == 100)
        #expect(try freshness(["Last-Modified": date(-1e9)]).lifetime == 7 * 86_400)
        #expect(try freshness(["Last-Modified": date(1000)]).lifetime == 0)
        #expect(try freshness(["Last-Modified": date(-1000)], status: 500).lifetime == 0)
        #expect(try freshness(["Last-Modified": date(-1000), "Cache-Control": "public"], status: 500).lifetime == 100)
        #expect(try freshness([:]).lifetime == 0)
        #expect(try freshness(["Cache-Control": "s-maxage=60"]).lifetime == 0)
    }

    @Test func `the age includes Date or Age, the transfer time and the time in the cache`() throws {
        let date = CacheSamples.date
        #expect(try freshness(["Date": date(0)]).age == 0)
        #expect(try freshness(["Date": date(-30)]).age == 30)
        #expect(try freshness(["Date": date(30)]).age == 0)
        #expect(try freshness(["Date": date(0), "Age": "20"], delay: 5).age == 25)
        #expect(try freshness(["Date": date(-30), "Age": "20"], delay: 5).age == 30)
        #expect(try freshness(["Date": date(-30), "Age": "x"], after: 7).age == 37)
        #expect(try freshness(["Age": "-5"], after: 7).age == 7)
        #expect(try freshness(["Age": "99999999999999999999"]).age == 2_147_483_647)
        #expect(try freshness([:], after: 1e18).age == 2_147_483_647)
    }

    @Test func `a response is fresh until its lifetime ends, and stale if the clock was set back`() throws {
        let headers: HeaderFields = ["Cache-Control": "max-age=60", "Date": CacheSamples.date(0)]
        #expect(try freshness(headers, after: 59).isFresh)
        #expect(try !freshness(headers, after: 60).isFresh)
        #expect(try freshness(headers, after: 75).staleness == 15)
        #expect(try freshness(headers, after: -30).isFresh)
        #expect(try !freshness(headers, after: -3600).isFresh)
    }
}
