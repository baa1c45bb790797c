// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The thread on which the value was created.
///
/// `pthread_t` is a number on Linux. On Apple platforms it is a pointer, which `@Sendable` closures cannot capture.
struct ThreadMark: @unchecked Sendable {
    // Sendable: the thread is only compared.

    private let thread = pthread_self()

    /// Whether this is the current thread.
    var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }
}
