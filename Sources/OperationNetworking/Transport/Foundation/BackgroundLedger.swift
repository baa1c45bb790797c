// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The state of a background session: which transfers this run of the program knows, what the system reported about the
/// others, and when the completion handler of the application's delegate is due.
///
/// It is a value: each event is a method, which returns the action that follows. The system's events come in any order and
/// may come before the program has said what to do with them:
///
/// ```text
/// process starts ─▶ session made ─▶ saved, received ─▶ ended ─▶ ... ─▶ finished events
///                         │                              │                  │
///                    rule for orphans               known: its task     handler kept: called
///                    set now or later               else: an orphan     handler comes late: called then
/// ```
package struct BackgroundLedger<Transfer, Answer, Handler> {
    /// What the system left of a transfer that ended.
    package struct Ending {
        package var file: SpooledFile?
        package var body: Data?
        package var failure: NetworkError?
    }

    package enum Action {
        case none
        /// Notify the task of this run that made the transfer.
        case conclude(Transfer, Ending)
        /// Pass on a transfer of an earlier run.
        case deliverOrphan(Answer, Ending)
    }

    private var transfers: [Int: Transfer] = [:]
    private var endings: [Int: Ending] = [:]
    /// Transfers of an earlier run that ended before there was a rule for them.
    private var orphans: [(Answer, Ending)] = []
    private var hasOrphanRule = false
    private var handlers: [Handler] = []
    /// Whether the system delivered all events before the application passed a completion handler.
    private var hasFinishedUnheard = false

    package init() {}

    /// A task of this run is about to start a transfer.
    package mutating func begin(_ number: Int, _ transfer: Transfer) {
        transfers[number] = transfer
        endings[number] = nil
    }

    /// The task of a transfer; nil if an earlier run made it.
    package func transfer(_ number: Int) -> Transfer? { transfers[number] }

    /// The system wrote the response of a download to a file, which was taken over or not.
    package mutating func save(_ number: Int, _ file: Result<SpooledFile, NetworkError>) {
        switch file {
        case .success(let file): endings[number, default: Ending()].file = file
        case .failure(let error): endings[number, default: Ending()].failure = error
        }
    }

    /// A part of the response to an upload arrived.
    package mutating func receive(_ number: Int, _ data: Data) {
        endings[number, default: Ending()].body = (endings[number]?.body ?? Data()) + data
    }

    /// A transfer ended.
    package mutating func end(_ number: Int, _ failure: NetworkError?, _ answer: @autoclosure () -> Answer) -> Action {
        var ending = endings.removeValue(forKey: number) ?? Ending()
        if let failure { ending.failure = failure }
        if let transfer = transfers.removeValue(forKey: number) { return .conclude(transfer, ending) }
        guard hasOrphanRule else {
            orphans.append((answer(), ending))
            return .none
        }
        return .deliverOrphan(answer(), ending)
    }

    /// There is a rule for transfers of an earlier run, or none any more; returns those that waited for one.
    package mutating func setOrphanRule(_ isSet: Bool) -> [(Answer, Ending)] {
        hasOrphanRule = isSet
        return isSet ? exchange(&orphans, with: []) : []
    }

    /// Keeps the completion handler of the application's delegate; returns it if it is due already.
    package mutating func keep(_ handler: Handler) -> Handler? {
        if exchange(&hasFinishedUnheard, with: false) { return handler }
        handlers.append(handler)
        return nil
    }

    /// The system delivered all events; returns the handlers that are due.
    package mutating func finishEvents() -> [Handler] {
        hasFinishedUnheard = handlers.isEmpty
        return exchange(&handlers, with: [])
    }
}
