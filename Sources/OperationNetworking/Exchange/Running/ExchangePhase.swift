// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A request of an exchange that is with the session.
struct Flight: Sendable {
    let prepared: PreparedHop
    let task: any NetworkTask
    /// When it was sent.
    let sent: Date
    /// What is kept, and is asked about.
    let kept: CacheCard.Variant?
}

/// Where the response comes from.
enum ResponseSource: Sendable {
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
}

/// What comes after a response that is not the answer.
enum NextStep: Sendable {
    /// Another address.
    case redirect(Hop)
    /// The same request with a proof.
    case proof(Hop, Proof)
    /// What is kept is the answer.
    case kept(PreparedHop, CacheCard.Variant, age: Int)
    /// The same request as if nothing was kept.
    case anew(PreparedHop)
}

/// How far an exchange has come.
enum ExchangePhase: Sendable {
    /// It was never resumed; nil for an address that cannot be taken apart.
    case waiting(Hop?)
    /// The next request is being put together, or the cache is asked.
    case preparing
    /// A request is with the session, and its head is not there yet.
    case asking(Flight)
    /// A rule of the user's is asked what becomes of a response, which is held meanwhile.
    case deciding(ResponseSource, ResponseHead)
    /// A response that is not the answer runs out.
    case draining(Flight, NextStep, CacheTee?, discarded: Int)
    /// The head was handed over, and the body follows.
    case delivering(ResponseSource, CacheTee?)
    case ended

    var source: ResponseSource? {
        switch self {
        case .asking(let flight), .draining(let flight, _, _, _): .network(flight)
        case .deciding(let source, _), .delivering(let source, _): source
        case .waiting, .preparing, .ended: nil
        }
    }
}

/// Why the bytes that come in are held.
struct ExchangeBrakes: OptionSet, Sendable {
    let rawValue: Int

    /// The receiver said so.
    static let receiver = ExchangeBrakes(rawValue: 1)
    /// The cache has more than it can write.
    static let cache = ExchangeBrakes(rawValue: 2)
    /// A rule is asked, or the head is being handed over.
    static let decision = ExchangeBrakes(rawValue: 4)
}
