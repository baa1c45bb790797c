// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// The state of a background session, which decides what to do with each event of the system.
///
/// The ledger records the transfers that this run of the program waits for, and the ends of other transfers. The ledger
/// also records the data of downloads that can continue, and the completion handlers of the application's delegate.
///
/// The ledger is a value. Each event is a method that returns the action to take. The system's events may come in any
/// order, and before the program has set its closures:
///
/// ```text
/// process starts ─▶ session made ─▶ saved, received ─▶ ended ─▶ ... ─▶ finished events
///                         │                              │                  │
///                    rule for orphans               known: its task     handlers kept: called
///                    set now or later               else: an orphan     handler comes late: called after a silence
/// ```
///
/// `Docs/Design/BackgroundSessions.md` describes the contract.
package struct BackgroundLedger<Transfer, Response, Rule, Handler> {
    /// The result of a transfer that ended.
    package struct Ending {
        package var file: SpooledFile?
        package var body: Data?
        package var failure: NetworkError?
        /// Whether the transfer began where an earlier one had stopped.
        package var isContinued = false
    }

    /// The parts of a request that two requests share if one may continue the download of the other.
    package struct RequestKey: Hashable, Sendable {
        let method: String
        let url: URL
        let headers: [String: String]

        package init(method: String, url: URL, headers: [String: String]) {
            (self.method, self.url, self.headers) = (method, url, headers)
        }
    }

    /// The end of a transfer, as the system reports it.
    package struct End {
        package var failure: NetworkError?
        /// The data with which a new transfer continues this one.
        package var resumeData: Data?
        /// The request of an orphan, or `nil` if it cannot be continued.
        package var key: RequestKey?

        package init(failure: NetworkError? = nil, resumeData: Data? = nil, key: RequestKey? = nil) {
            (self.failure, self.resumeData, self.key) = (failure, resumeData, key)
        }
    }

    package enum Action {
        /// Hold an orphan until there is a rule, for which another orphan may have been removed.
        case hold(hasRemoved: Bool)
        /// Notify the task of this run that made the transfer.
        case conclude(Transfer, Ending)
        /// Send the request again from its beginning, because the system did not accept the resume data.
        case startOver(Transfer)
        /// Pass on a transfer that no task of this run waits for.
        case deliverOrphan(Rule, Response, Ending)
    }

    /// A time without events, after which a handler is called although the system did not report that it is due.
    package struct Silence: Equatable, Sendable {
        /// The length of the silence.
        package let duration: Duration
        fileprivate let handler: Int
        fileprivate let events: Int
    }

    package enum AfterSilence {
        case call(Handler)
        /// An event came in the meantime.
        case wait(Silence)
        /// The handler was already called.
        case none
    }

    /// The maximum number of orphans that are held.
    package static var mostHeld: Int { 1_000 }
    /// The maximum number of bytes of the response to an upload that are kept in memory.
    package static var mostInMemory: Int { 64 << 10 }
    /// The maximum number of requests for which resume data is kept.
    package static var mostResumable: Int { 64 }

    private var transfers: [Int: Transfer] = [:]
    /// The requests of downloads of this run.
    ///
    /// The system may not know the request of a task that continues an earlier one.
    private var keys: [Int: RequestKey] = [:]
    private var endings: [Int: Ending] = [:]
    private var rule: Rule?
    private var held = Fifo<(Response, Ending)>()
    private var removed = 0
    /// The running transfers that the program asked for and that no task waits for.
    private var listed: Set<Int> = []
    private var listings = 0
    private var endedWhileListing: Set<Int> = []
    /// The transfers that continue earlier ones, and whether the system accepted that.
    private var continued: [Int: Bool] = [:]
    private var resumable: [(key: RequestKey, data: Data)] = []
    private var handlers: [(number: Int, handler: Handler, isLate: Bool)] = []
    private var lastHandler = 0
    /// Whether the system delivered all events, and no handler certainly belonged to these events.
    private var hasFinishedUnheard = false
    /// The number of events that the system reported.
    private var events = 0

    package init() {}
}

// Transfers.
extension BackgroundLedger {
    /// Records that a task of this run is about to start a transfer.
    ///
    /// - Parameter key: The request, or `nil` if it cannot be continued.
    package mutating func begin(
        _ number: Int, _ transfer: Transfer, _ key: RequestKey? = nil, isContinuing: Bool = false
    ) {
        transfers[number] = transfer
        keys[number] = key
        endings[number] = nil
        continued[number] = isContinuing ? false : nil
    }

    /// Assigns a listed transfer to a task of this run, and returns `false` if the transfer has ended or has a task.
    package mutating func adopt(_ number: Int, _ transfer: Transfer) -> Bool {
        guard listed.remove(number) != nil else { return false }
        transfers[number] = transfer
        return true
    }

    /// Returns the task of a transfer, or `nil` if no task of this run waits for it.
    package func transfer(_ number: Int) -> Transfer? { transfers[number] }

    /// Returns whether the system reported the result for the body of a transfer.
    package func hasBody(_ number: Int) -> Bool { endings[number] != nil }

    /// Records the file with the body of a response, or the error because of which it could not be kept.
    package mutating func save(_ number: Int, _ file: Result<SpooledFile, NetworkError>) {
        events += 1
        switch file {
        case .success(let file): endings[number, default: Ending()].file = file
        case .failure(let error): endings[number, default: Ending()].failure = error
        }
    }

    /// Records a part of the response to an upload.
    ///
    /// - Returns: The bytes to add to the file of the response, and this file or `nil` if there is none yet. The caller
    ///   passes the file to `save` afterwards. The result is `nil` if there is nothing to add to a file.
    package mutating func receive(_ number: Int, _ data: Data) -> (bytes: Data, file: SpooledFile?)? {
        events += 1
        var ending = endings[number] ?? Ending()
        defer { endings[number] = ending }
        // A file with a missing part is useless.
        guard ending.failure == nil else { return nil }
        if ending.file == nil, (ending.body?.count ?? 0) + data.count <= Self.mostInMemory {
            ending.body = (ending.body ?? Data()) + data
            return nil
        }
        let bytes = (ending.body ?? Data()) + data
        ending.body = nil
        return (bytes, ending.file)
    }

    /// Records that the system accepted a transfer as the continuation of an earlier one.
    package mutating func accept(_ number: Int) {
        events += 1
        if continued[number] != nil { continued[number] = true }
    }

    /// Records that a transfer ended, and returns the action to take.
    package mutating func end(_ number: Int, _ end: End, _ answer: @autoclosure () -> Response) -> Action {
        events += 1
        listed.remove(number)
        if listings > 0 { endedWhileListing.insert(number) }
        var ending = endings.removeValue(forKey: number) ?? Ending()
        if let failure = end.failure { ending.failure = failure }
        let isAccepted = continued.removeValue(forKey: number)
        ending.isContinued = isAccepted != nil
        if let key = keys.removeValue(forKey: number) ?? end.key, let data = end.resumeData { keep(data, for: key) }
        if let transfer = transfers.removeValue(forKey: number) {
            let isRefused = isAccepted == false && end.resumeData == nil
            guard isRefused, let failure = end.failure, failure.code != .cancelled else {
                return .conclude(transfer, ending)
            }
            return .startOver(transfer)
        }
        if let rule { return .deliverOrphan(rule, answer(), ending) }
        held.append((answer(), ending))
        guard held.count > Self.mostHeld else { return .hold(hasRemoved: false) }
        held.removeFirst()
        removed += 1
        return .hold(hasRemoved: true)
    }

    /// Sets or removes the rule for orphans, and returns the orphans that waited for one.
    ///
    /// The result also contains the number of orphans that were removed because too many were held.
    package mutating func setRule(_ rule: Rule?) -> (orphans: [(Response, Ending)], removed: Int) {
        self.rule = rule
        guard rule != nil else { return ([], 0) }
        var orphans: [(Response, Ending)] = []
        while let orphan = held.popFirst() { orphans.append(orphan) }
        return (orphans, exchange(&removed, with: 0))
    }
}

// Transfers that no task waits for.
extension BackgroundLedger {
    /// Records that the system is asked for its unfinished transfers.
    package mutating func beginListing() { listings += 1 }

    /// Records the system's answer, and returns the running transfers that no task of this run waits for.
    package mutating func list(_ numbers: [Int]) -> [Int] {
        listings -= 1
        let orphans = numbers.filter { transfers[$0] == nil && !endedWhileListing.contains($0) }
        if listings == 0 { endedWhileListing = [] }
        listed.formUnion(orphans)
        return orphans
    }
}

// Downloads that failed and can be continued.
extension BackgroundLedger {
    private mutating func keep(_ data: Data, for key: RequestKey) {
        resumable.removeAll { $0.key == key }
        resumable.append((key, data))
        if resumable.count > Self.mostResumable { resumable.removeFirst() }
    }

    /// Removes and returns the data that continues the download of a request.
    package mutating func takeResumeData(for key: RequestKey) -> Data? {
        resumable.firstIndex { $0.key == key }.map { resumable.remove(at: $0).data }
    }
}

// The completion handlers of the application's delegate.
extension BackgroundLedger {
    /// Keeps a handler until the system has delivered all events, or has been silent for a while.
    ///
    /// The caller must call `lookAgain` after the returned silence.
    ///
    /// If the system has already delivered all events, the handler may belong to these events or to those of a later
    /// wake, and the system does not say which. Events of a later wake are on their way, so a short silence decides.
    /// Otherwise, the silence is long. The long silence is only for a handler that nothing else would call, because the
    /// system reported several wakes together.
    package mutating func keep(_ handler: Handler) -> Silence {
        lastHandler += 1
        let isLate = exchange(&hasFinishedUnheard, with: false)
        handlers.append((lastHandler, handler, isLate))
        return Silence(duration: .seconds(isLate ? 2 : 20), handler: lastHandler, events: events)
    }

    /// Returns what to do after a silence, whose handler is due if no event came.
    package mutating func lookAgain(_ silence: Silence) -> AfterSilence {
        guard let place = handlers.firstIndex(where: { $0.number == silence.handler }) else { return .none }
        guard silence.events == events else {
            return .wait(Silence(duration: silence.duration, handler: silence.handler, events: events))
        }
        return .call(handlers.remove(at: place).handler)
    }

    /// Records that the system delivered all events, and returns the handlers that are due.
    package mutating func finishEvents() -> [Handler] {
        events += 1
        hasFinishedUnheard = handlers.allSatisfy(\.isLate)
        return exchange(&handlers, with: []).map(\.handler)
    }
}
