// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

let (queue, canceled) = (OperationQueue(), BlockOperation {})
canceled.cancel()
queue.addOperation { sleep(1) }
queue.addBarrierBlock {}
queue.addOperation(canceled)
print("finished")
