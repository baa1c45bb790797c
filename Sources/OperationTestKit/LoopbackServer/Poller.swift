// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An object that waits until descriptors can be read or written, for use on one thread.
///
/// The cost of a wait grows with the number of descriptors.
final class Poller {
    private var entries: [pollfd] = []
    private var places: [Int32: Int] = [:]

    /// Watches a descriptor, or changes the events for which it is watched.
    func watch(_ file: Int32, for interest: PollEvents) {
        if let place = places[file] {
            entries[place].events = interest.rawValue
        } else {
            places[file] = entries.count
            entries.append(pollfd(fd: file, events: interest.rawValue, revents: 0))
        }
    }

    /// Stops watching a descriptor, before it is closed.
    func forget(_ file: Int32) {
        guard let place = places.removeValue(forKey: file), let last = entries.popLast() else { return }
        guard place < entries.count else { return }
        entries[place] = last
        places[last.fd] = place
    }

    /// Waits for an event for at most the given time, and calls `body` for each descriptor with events.
    ///
    /// - Parameters:
    ///   - milliseconds: The maximum time to wait, or -1 to wait without a limit.
    ///   - body: A closure that is called with a descriptor and its events.
    func wait(atMost milliseconds: Int32, _ body: (Int32, PollEvents) -> Void) {
        guard poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return }
        // The loop iterates over a copy, because handling an event changes the watched descriptors.
        for entry in entries where entry.revents != 0 { body(entry.fd, PollEvents(rawValue: entry.revents)) }
    }
}

/// The events of a descriptor, or the events for which a descriptor is watched, as the system numbers them.
///
/// The system also reports errors, for which a descriptor need not be watched.
struct PollEvents: OptionSet {
    let rawValue: Int16

    static let readable = Self(rawValue: Int16(POLLIN))
    static let writable = Self(rawValue: Int16(POLLOUT))
}
