// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// Saves sets of cookies to a file and checks that each loaded set is complete.
struct CookieUser {
    private let storage: FileCookieStorage
    private let seed: UInt64

    init(_ file: URL, seed: UInt64) {
        storage = FileCookieStorage(url: file)
        self.seed = seed
    }

    func run(_ rounds: Int) throws -> String {
        for round in 0..<rounds {
            let cookies = (0..<20 + round % 30).map { index in
                Cookie(
                    name: "c\(index)", value: "\(seed)-\(round)-\(20 + round % 30)", domain: "h.com",
                    expires: Date(timeIntervalSinceNow: 3_600))
            }
            try storage.save(cookies)
            let loaded = try storage.load()
            let values = Set(loaded.map(\.value))
            guard values.count == 1, values.first?.hasSuffix("-\(loaded.count)") == true else {
                fail("the file has \(loaded.count) cookies of \(values.count) sets")
            }
        }
        return "OK \(rounds) rounds"
    }
}
