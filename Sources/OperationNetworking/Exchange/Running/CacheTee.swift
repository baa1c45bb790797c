// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Writes a body to the cache while it goes to its receiver.
package final class CacheTee: Sendable {
    /// How many bytes may wait to be written before the response is held.
    private static let highWater = 1 << 20
    private static let lowWater = 256 << 10

    private struct State {
        var pending = 0
        var isOver = false
        var isHolding = false
    }

    private let cache: HTTPCache
    private let resource: String
    private let response: CachedResponse
    private let state = Locked(State())
    // Sendable: only used on the queue of the cache.
    private nonisolated(unsafe) var writer: Int?

    /// - Parameter moment: When the response was asked for; nil for now.
    package init(
        _ response: CachedResponse, at resource: String, in cache: HTTPCache, since moment: CacheChanges.Moment? = nil
    ) {
        self.cache = cache
        self.resource = resource
        self.response = response
        cache.perform { [self] disk, _ in
            writer = disk.openWriter(since: moment)
            if writer == nil { state.withLock { $0.isOver = true } }
        }
    }

    /// Takes bytes.
    ///
    /// - Parameters:
    ///   - bytes: The bytes.
    ///   - hold: Holds the response, because too many bytes wait to be written.
    ///   - proceed: Lets it go on; called on the queue of the cache, or here.
    package func append(
        _ bytes: UnsafeRawBufferPointer, hold: () -> Void, proceed: @escaping @Sendable () -> Void
    ) {
        let (isOver, mustHold): (Bool, Bool) = state.withLock { state in
            guard !state.isOver else { return (true, false) }
            state.pending += bytes.count
            let mustHold = state.pending > Self.highWater
            if mustHold { state.isHolding = true }
            return (false, mustHold)
        }
        guard !isOver else { return }
        let data = Data(bytes)
        cache.perform { [self] disk, now in
            let isWritten = writer.map { disk.append(data, to: $0, now: now) } ?? false
            let mayProceed = state.withLock { state in
                if !isWritten { state.isOver = true }
                state.pending -= data.count
                guard state.isHolding, state.pending < Self.lowWater || state.isOver else { return false }
                state.isHolding = false
                return true
            }
            if mayProceed { proceed() }
        }
        guard mustHold else { return }
        hold()
        // All may have been written before the brake was set, and `proceed` have found nothing to let go of.
        if !state.withLock({ $0.isHolding }) { proceed() }
    }

    /// The body is complete, or is not to be kept after all.
    package func end(isComplete: Bool) {
        cache.perform { [self] disk, now in
            guard let number = writer else { return }
            writer = nil
            if isComplete, !state.withLock({ $0.isOver }) {
                disk.commit(number, response, at: resource, now: now)
            } else {
                disk.discardWriter(number)
            }
        }
    }
}
