// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Counters
import Dispatch
import OperationCore

let queue = QueueManager("pair")
let first = ClosureOperation { 1 }
let second = ClosureOperation { 2 }
second.successHandler = { _ in
    // The thread of the queue has nothing more to do by then. Otherwise, the figures would depend on its last steps.
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.2) { Measurement.finish() }
}
Measurement.start()
second.addDependency(first)
try queue.add([first, second])
dispatchMain()
