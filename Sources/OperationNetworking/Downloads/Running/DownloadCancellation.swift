// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Whether a download was cancelled: set by whoever cancels it, and looked at by its queue where it works for long, and
/// once more just before the file takes its place.
package final class DownloadCancellation: Sendable {
    private let state = Locked(false)

    package init() {}

    package var isSet: Bool { state.withLock { $0 } }

    package func set() { state.withLock { $0 = true } }
}
