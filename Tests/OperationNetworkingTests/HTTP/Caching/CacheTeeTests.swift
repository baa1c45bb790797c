// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheTeeTests {
    private let folder = CacheFolderFixture()

    @Test func `a response that is held for the cache is released after the cache has written it`() async throws {
        let folder = folder
        let (isHeld, holds) = try await TestThread.run {
            let cache = HTTPCache(folder: folder.url)
            let response = try CacheSamples.response(200, ["Cache-Control": "max-age=60"])
            let tee = CacheTee(response, at: "http://h.com/", in: cache)
            let isHeld = Locked(false)
            let holds = Locked(0)
            let bytes = [UInt8](repeating: 65, count: 3 << 20)
            bytes.withUnsafeBytes { bytes in
                tee.append(
                    bytes,
                    hold: {
                        isHeld.withLock { $0 = true }
                        holds.withLock { $0 += 1 }
                    }, proceed: { isHeld.withLock { $0 = false } })
            }
            let written = DispatchSemaphore(value: 0)
            cache.perform { _, _ in written.signal() }
            written.wait()
            tee.end(isComplete: false)
            return (isHeld.withLock { $0 }, holds.withLock { $0 })
        }
        #expect(!isHeld && holds == 1)
    }
}
