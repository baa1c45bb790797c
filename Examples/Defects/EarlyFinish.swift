// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

final class Download: Operation, @unchecked Sendable {
    private var isDone = false
    override var isFinished: Bool { isDone }
    func finish() {
        willChangeValue(for: \.isFinished)
        isDone = true
        didChangeValue(for: \.isFinished)
    }
}

let queue = OperationQueue()
queue.isSuspended = true
for _ in 0..<2 {
    let download = Download()
    queue.addOperation(download)
    download.finish()
}
queue.isSuspended = false
print("finished")
