// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

func secondsToRun(_ count: Int) -> Int {
    var operations = [BlockOperation {}]
    for _ in 1..<count {
        let next = operations[0]
        let operation = BlockOperation { next.waitUntilFinished() }
        operations.insert(operation, at: 0)
    }
    let start = Date()
    OperationQueue().addOperations(operations, waitUntilFinished: true)
    return Int(-start.timeIntervalSinceNow)
}
let processors = ProcessInfo.processInfo.activeProcessorCount
print(secondsToRun(processors + 5), "seconds")
