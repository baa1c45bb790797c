// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

// A program that uses a cache folder or a cookie file concurrently with other processes. Prints a summary or the error.

func fail(_ text: String) -> Never {
    print("BAD \(text)")
    exit(1)
}

let arguments = CommandLine.arguments
guard arguments.count == 6, let seed = UInt64(arguments[3]), let rounds = Int(arguments[4]),
    let limit = Int64(arguments[5])
else { fail("usage: SharingProbe cache|cache-by-rounds|cookies <place> <seed> <rounds> <limit of bytes>") }
let place = URL(fileURLWithPath: arguments[2])
switch arguments[1] {
case "cache", "cache-by-rounds":
    var user = CacheUser(CacheFolder(url: place), limit: limit, seed: seed)
    print(try user.run(rounds, isTelling: arguments[1] == "cache-by-rounds"))
case "cookies": print(try CookieUser(place, seed: seed).run(rounds))
default: fail("\(arguments[1]) is nothing that it can do")
}
