// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

var last = BlockOperation {}
for _ in 1..<40_000 {
    let next = BlockOperation {}
    next.addDependency(last)
    last = next
}
last = BlockOperation {}
print("finished")
