// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A request of an exchange that is with the session.
struct Flight: Sendable {
    let prepared: PreparedHop
    let task: any NetworkTask
    let brakes: BrakeLine
    /// When it was sent.
    let sent: Date
    /// What is kept, and is asked about.
    let kept: CacheCard.Variant?
}

/// Where the response comes from.
enum ResponseSource: ExchangeSource {
    case network(Flight)
    /// The cache: the number of an open body, or none where only the head is wanted.
    case cache(PreparedHop, body: Int?)
    /// Nowhere: a head of our own.
    case nothing(PreparedHop)

    var prepared: PreparedHop {
        switch self {
        case .network(let flight): flight.prepared
        case .cache(let prepared, _), .nothing(let prepared): prepared
        }
    }

    var task: (any NetworkTask)? {
        if case .network(let flight) = self { flight.task } else { nil }
    }

    /// The brakes of that task.
    var brakes: BrakeLine? {
        if case .network(let flight) = self { flight.brakes } else { nil }
    }

    var isFlight: Bool { task != nil }

    /// What is not on its way from a session ends when somebody reads on, and so not before the brakes allow it.
    var isRead: Bool { !isFlight }
}

/// What comes after a response that is not the answer.
enum NextStep: Sendable {
    /// Another address.
    case redirect(Hop)
    /// The same request with a proof.
    case proof(Hop, Proof)
    /// What is kept is the answer.
    case kept(PreparedHop, CacheCard.Variant, age: Int)
    /// The same, for the last time: the server says that it may not be kept any longer.
    case keptUntilNow(PreparedHop, CacheCard.Variant, age: Int)
    /// The same request as if nothing was kept.
    case anew(PreparedHop)
}
