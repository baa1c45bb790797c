// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheTeeTests {
    private let folder = CacheFolderFixture()

    @Test func `a response does not stay held if the cache finishes writing before the hold begins`() async throws {
        let folder = folder
        let isHeld = try await TestThread.run {
            let cache = HTTPCache(folder: folder.url)
            let response = try CacheSamples.response(200, ["Cache-Control": "max-age=60"])
            let tee = CacheTee(response, at: "http://h.com/", in: cache)
            let isHeld = Locked(false)
            let bytes = [UInt8](repeating: 65, count: 3 << 20)
            bytes.withUnsafeBytes { bytes in
                tee.append(
                    bytes,
                    hold: {
                        // The cache finishes writing before the hold begins.
                        let written = DispatchSemaphore(value: 0)
                        cache.perform { _, _ in written.signal() }
                        written.wait()
                        isHeld.withLock { $0 = true }
                    }, proceed: { isHeld.withLock { $0 = false } })
            }
            tee.end(isComplete: false)
            return isHeld.withLock { $0 }
        }
        #expect(!isHeld)
    }
}
