// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

let operation = BlockOperation {}
operation.addDependency(operation)
print("finished")
