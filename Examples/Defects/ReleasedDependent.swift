// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

let first = BlockOperation {}
do {
    let second = BlockOperation {}
    second.addDependency(first)
}
first.start()
print("finished")
