// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CookieDateTests {
    @Test(arguments: [
        ("Wed, 09 Jun 2021 10:18:14 GMT", 1_623_233_894.0), ("Wed, 09-Jun-2021 10:18:14 GMT", 1_623_233_894),
        ("10:18:14 2021 jun 9", 1_623_233_894), ("09 June 21 10:18:14", 1_623_233_894),
        ("1:2:3 1 jan 1970", 3723), ("01 Jan 70 00:00:00", 0), ("01 Jan 69 00:00:00", 3_124_224_000),
        ("Thu, 01-Jan-1970 00:00:00xyz GMT", 0), ("1x Jan 1970 0:0:0", 0), ("Thu;01;Jan;1970;00:00:00", 0),
        ("garbage 01 Jan 1970 00:00:00 more 02 Feb 1999 11:11:11", 0), ("01 January99 1970 00:00:00", 0),
        ("31 Dec 1601 23:59:59", -11_612_937_601),
    ])
    func `a cookie date is parsed with its parts in any order`(text: String, seconds: Double) {
        #expect(CookieDate.parse(text)?.timeIntervalSince1970 == seconds)
    }

    @Test(arguments: [
        "", "Wed", "09 Jun 2021", "10:18:14 Jun 2021", "09 2021 10:18:14", "32 Jun 2021 10:18:14",
        "0 Jun 2021 10:18:14",
        "31 Jun 2021 10:18:14", "29 Feb 2021 10:18:14", "09 Jun 2021 24:00:00", "09 Jun 2021 10:60:00",
        "09 Jun 2021 10:18:60", "09 Jun 1600 10:18:14", "09 Jun 20211 10:18:14", "09 Jun 2021 100:18:14",
        "09 Jun 2021 10:18", "123 Jun 2021 10:18:14", "09 Jum 2021 10:18:14",
    ])
    func `a cookie date with a missing or invalid part is rejected`(text: String) {
        #expect(CookieDate.parse(text) == nil)
    }
}
