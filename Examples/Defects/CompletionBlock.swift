// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

weak var reference: Operation?
do {
    let operation = BlockOperation {}
    operation.completionBlock = { print(operation.isFinished) }
    operation.start()
    reference = operation
}
sleep(1)
print("released:", reference == nil)
