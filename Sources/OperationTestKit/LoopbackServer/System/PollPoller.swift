// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A poller on `poll(2)`, which every system has: the cost of a wait grows with the number of descriptors.
final class PollPoller: Poller {
    private var entries: [pollfd] = []
    private var places: [Int32: Int] = [:]

    func watch(_ file: Int32, for interest: PollInterest) {
        var events = Int16(0)
        if interest.contains(.reading) { events |= Int16(POLLIN) }
        if interest.contains(.writing) { events |= Int16(POLLOUT) }
        if let place = places[file] {
            entries[place].events = events
        } else {
            places[file] = entries.count
            entries.append(pollfd(fd: file, events: events, revents: 0))
        }
    }

    func forget(_ file: Int32) {
        guard let place = places.removeValue(forKey: file), let last = entries.popLast() else { return }
        guard place < entries.count else { return }
        entries[place] = last
        places[last.fd] = place
    }

    func wait(_ body: (Int32, PollResult) -> Void) {
        guard poll(&entries, nfds_t(entries.count), -1) > 0 else { return }
        // A copy: what is done about one changes which are watched.
        for entry in entries where entry.revents != 0 {
            var result: PollResult = []
            if entry.revents & Int16(POLLIN) != 0 { result.insert(.readable) }
            if entry.revents & Int16(POLLOUT) != 0 { result.insert(.writable) }
            if entry.revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0 { result.insert(.broken) }
            body(entry.fd, result)
        }
    }

    func close() {}
}
