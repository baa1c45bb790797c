// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The thread on which it was made.
///
/// `pthread_t` is a number on Linux and a pointer on Apple platforms, where closures that are sent cannot capture it.
struct ThreadMark: @unchecked Sendable {
    // Sendable: the thread is only compared.

    private let thread = pthread_self()

    /// Whether this is the current thread.
    var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }
}
