// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

let seconds = [500, 4_000].map { length in
    let chain = (0..<length).map { _ in BlockOperation {} }
    for (operation, next) in zip(chain, chain.dropFirst()) {
        next.addDependency(operation)
    }
    let start = Date()
    OperationQueue().addOperations(chain, waitUntilFinished: true)
    return -start.timeIntervalSinceNow
}
print(Int(seconds[1] / seconds[0]), "times as long")
