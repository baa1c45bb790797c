// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The state of a background session: which transfers this run of the program waits for, what the system reported about the
/// others, how a failed download can be continued, and when the completion handlers of the application's delegate are due.
///
/// It is a value: each event is a method, which returns the action that follows. The system's events may come in any order,
/// and before the program has said what to do with them:
///
/// ```text
/// process starts ─▶ session made ─▶ saved, received ─▶ ended ─▶ ... ─▶ finished events
///                         │                              │                  │
///                    rule for orphans               known: its task     handlers kept: called
///                    set now or later               else: an orphan     handler comes late: called after a silence
/// ```
///
/// `Docs/Design/BackgroundSessions.md` has the contract.
package struct BackgroundLedger<Transfer, Answer, Rule, Handler> {
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
        /// The request of an orphan, unless it cannot be continued.
        package var key: RequestKey?

        package init(failure: NetworkError? = nil, resumeData: Data? = nil, key: RequestKey? = nil) {
            (self.failure, self.resumeData, self.key) = (failure, resumeData, key)
        }
    }

    package enum Action {
        /// An orphan is held until there is a rule; another one may have been removed for it.
        case hold(hasRemoved: Bool)
        /// Notify the task of this run that made the transfer.
        case conclude(Transfer, Ending)
        /// Send the request again from its beginning: the system did not accept the resume data.
        case startOver(Transfer)
        /// Pass on a transfer that no task of this run waits for.
        case deliverOrphan(Rule, Answer, Ending)
    }

    /// The orphans that are delivered when a rule is set.
    package struct Release {
        package var orphans: [(Answer, Ending)] = []
        /// How many orphans were removed because too many were held.
        package var removed = 0
    }

    /// A time in which nothing may happen, after which a handler is called although the system did not say that it is due.
    package struct Silence: Equatable, Sendable {
        /// How long it lasts.
        package let duration: Duration
        fileprivate let handler: Int
        fileprivate let events: Int
    }

    package enum AfterSilence {
        case call(Handler)
        /// Something happened meanwhile.
        case wait(Silence)
        /// The handler was called before.
        case none
    }

    /// How many orphans are held at most.
    package static var mostHeld: Int { 1_000 }
    /// How many bytes of the response to an upload are kept in memory.
    package static var mostInMemory: Int { 64 << 10 }
    /// For how many requests resume data is kept.
    package static var mostResumable: Int { 64 }

    private var transfers: [Int: Transfer] = [:]
    /// The requests of downloads of this run.
    ///
    /// The system may not know the request of a task that continues an earlier one.
    private var keys: [Int: RequestKey] = [:]
    private var endings: [Int: Ending] = [:]
    private var rule: Rule?
    private var held = Fifo<(Answer, Ending)>()
    private var removed = 0
    /// Transfers that run and that no task waits for, as far as the program asked for them.
    private var listed: Set<Int> = []
    private var listings = 0
    private var endedWhileListing: Set<Int> = []
    /// Transfers that continue earlier ones, and whether the system accepted that.
    private var continued: [Int: Bool] = [:]
    private var resumable: [(key: RequestKey, data: Data)] = []
    private var handlers: [(number: Int, handler: Handler, isLate: Bool)] = []
    private var lastHandler = 0
    /// Whether the system delivered all events, and no handler was certainly that of these events.
    private var hasFinishedUnheard = false
    /// How many events the system reported.
    private var events = 0

    package init() {}
}

// Transfers.
extension BackgroundLedger {
    /// A task of this run is about to start a transfer.
    ///
    /// - Parameter key: The request, unless it cannot be continued.
    package mutating func begin(
        _ number: Int, _ transfer: Transfer, _ key: RequestKey? = nil, isContinuing: Bool = false
    ) {
        transfers[number] = transfer
        keys[number] = key
        endings[number] = nil
        continued[number] = isContinuing ? false : nil
    }

    /// A task of this run waits from now on for a transfer that was listed; false if that transfer has ended, or has a task.
    package mutating func adopt(_ number: Int, _ transfer: Transfer) -> Bool {
        guard listed.remove(number) != nil else { return false }
        transfers[number] = transfer
        return true
    }

    /// The task of a transfer; nil if no task of this run waits for it.
    package func transfer(_ number: Int) -> Transfer? { transfers[number] }

    /// Whether the system reported what became of the body of a transfer.
    package func hasBody(_ number: Int) -> Bool { endings[number] != nil }

    /// The system wrote the response of a download to a file, which was taken over or not.
    package mutating func save(_ number: Int, _ file: Result<SpooledFile, NetworkError>) {
        events += 1
        switch file {
        case .success(let file): endings[number, default: Ending()].file = file
        case .failure(let error): endings[number, default: Ending()].failure = error
        }
    }

    /// A part of the response to an upload arrived.
    ///
    /// Returns the bytes that are to be added to its file, which is nil if there is none yet. The file is then passed to `save`.
    package mutating func receive(_ number: Int, _ data: Data) -> (bytes: Data, file: SpooledFile?)? {
        events += 1
        var ending = endings[number] ?? Ending()
        defer { endings[number] = ending }
        // A file with a hole is of no use.
        guard ending.failure == nil else { return nil }
        if ending.file == nil, (ending.body?.count ?? 0) + data.count <= Self.mostInMemory {
            ending.body = (ending.body ?? Data()) + data
            return nil
        }
        let bytes = (ending.body ?? Data()) + data
        ending.body = nil
        return (bytes, ending.file)
    }

    /// The system accepted that a transfer continues an earlier one.
    package mutating func accept(_ number: Int) {
        events += 1
        if continued[number] != nil { continued[number] = true }
    }

    /// A transfer ended.
    package mutating func end(_ number: Int, _ end: End, _ answer: @autoclosure () -> Answer) -> Action {
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

    /// There is a rule for orphans, or none any more; returns the orphans that waited for one.
    package mutating func setRule(_ rule: Rule?) -> Release {
        self.rule = rule
        var release = Release()
        guard rule != nil else { return release }
        while let orphan = held.popFirst() { release.orphans.append(orphan) }
        release.removed = exchange(&removed, with: 0)
        return release
    }
}

// Transfers that no task waits for.
extension BackgroundLedger {
    /// The system is asked for its unfinished transfers.
    package mutating func beginListing() { listings += 1 }

    /// The system's answer; returns those of them that run and that no task of this run waits for.
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

    /// Takes out the data that continues the download of a request.
    package mutating func takeResumeData(for key: RequestKey) -> Data? {
        resumable.firstIndex { $0.key == key }.map { resumable.remove(at: $0).data }
    }
}

// The completion handlers of the application's delegate.
extension BackgroundLedger {
    /// Keeps a handler until the system has delivered all events, or has been silent for a while: `lookAgain` is to be called
    /// then.
    ///
    /// If the system has delivered all events already, the handler may belong to these events or to those of a later wake, and
    /// the system does not say which. Events of a later wake are on their way, so a short silence decides. Otherwise the silence
    /// is long, and only for a handler that nothing else would call, because one report of the system was for several wakes.
    package mutating func keep(_ handler: Handler) -> Silence {
        lastHandler += 1
        let isLate = exchange(&hasFinishedUnheard, with: false)
        handlers.append((lastHandler, handler, isLate))
        return Silence(duration: .seconds(isLate ? 2 : 20), handler: lastHandler, events: events)
    }

    /// Whether nothing has happened during a silence, so that its handler is due.
    package mutating func lookAgain(_ silence: Silence) -> AfterSilence {
        guard let place = handlers.firstIndex(where: { $0.number == silence.handler }) else { return .none }
        guard silence.events == events else {
            return .wait(Silence(duration: silence.duration, handler: silence.handler, events: events))
        }
        return .call(handlers.remove(at: place).handler)
    }

    /// The system delivered all events; returns the handlers that are due.
    package mutating func finishEvents() -> [Handler] {
        events += 1
        hasFinishedUnheard = handlers.allSatisfy(\.isLate)
        return exchange(&handlers, with: []).map(\.handler)
    }
}
