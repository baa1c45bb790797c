// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

let (first, second) = (BlockOperation {}, BlockOperation {})
second.addDependency(first)
second.removeDependency(first)
OperationQueue().addOperation(second)
sleep(1)
print("finished:", second.isFinished)
