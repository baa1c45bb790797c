// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Counters
import Dispatch
import OperationCore

let queue = QueueManager("pair")
let first = ClosureOperation { 1 }
let second = ClosureOperation { 2 }
second.successHandler = { _ in Measurement.finish() }
Measurement.start()
second.addDependency(first)
try queue.add([first, second])
dispatchMain()
