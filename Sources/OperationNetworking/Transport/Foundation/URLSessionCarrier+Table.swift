// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension URLSessionCarrier {
    private struct Entry {
        weak var session: URLSession?
        let carrier: URLSessionCarrier
    }

    // A session cannot be given a property on all systems, so there is a list of those that made tasks.
    private static let table = Locked<[ObjectIdentifier: Entry]>([:])

    /// The carrier of a session.
    static func of(_ session: URLSession) -> URLSessionCarrier {
        let key = ObjectIdentifier(session)
        if let known = table.withLock({ $0[key].flatMap { $0.session === session ? $0.carrier : nil } }) {
            return known
        }
        let made = URLSessionCarrier(session)
        var left: [Entry] = []
        // A session of the user's that is looked at may be nobody else's by then: it is freed after the lock.
        var others: [URLSession] = []
        let carrier = table.withLock { table -> URLSessionCarrier in
            // Another thread may have been faster; an older session may have had the same address.
            if let entry = table[key], entry.session === session { return entry.carrier }
            for (key, entry) in table {
                if let other = entry.session {
                    others.append(other)
                } else {
                    left.append(entry)
                    table[key] = nil
                }
            }
            table[key] = Entry(session: session, carrier: made)
            return made
        }
        withExtendedLifetime(others) {}
        for entry in left { entry.carrier.rest() }
        return carrier
    }
}
