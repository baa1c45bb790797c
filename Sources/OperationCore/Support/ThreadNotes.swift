// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What the library has to remember about the calling thread; freed when the thread ends.
final class ThreadNotes {
    /// Whether the thread works through `pending`.
    var isWorking = false
    /// What it has still to do: see ``ThreadWorklist``.
    var pending = Fifo<() -> Void>()
    /// How many bodies of operations that came from a queue it is in, one inside the other.
    var queuedBodies = 0

    /// The notes of the calling thread.
    static var current: ThreadNotes {
        if let pointer = pthread_getspecific(key) {
            return Unmanaged<ThreadNotes>.fromOpaque(pointer).takeUnretainedValue()
        }
        let notes = ThreadNotes()
        pthread_setspecific(key, Unmanaged.passRetained(notes).toOpaque())
        return notes
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        #if canImport(Darwin)
            pthread_key_create(&key) { Unmanaged<AnyObject>.fromOpaque($0).release() }
        #else
            pthread_key_create(&key) { pointer in
                if let pointer { Unmanaged<AnyObject>.fromOpaque(pointer).release() }
            }
        #endif
        return key
    }()
}
