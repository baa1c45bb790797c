// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit
import Testing

/// Records the notices of operations with a name that only one test uses.
///
/// Other notices go to the previous handler.
enum NoticeTaker {
    private static let recorders = Locked<[String: EventRecorder<OperationNotice>]>([:])

    private static let installed: Void = {
        let before = OperationDiagnostics.handler
        OperationDiagnostics.handler = { notice in
            if let recorder = recorders.withLock({ $0[notice.operation] }) { return recorder.record(notice) }
            before?(notice)
        }
    }()

    static func recorder(for name: String) -> EventRecorder<OperationNotice> {
        _ = installed
        return recorders.withLock { recorders in
            let recorder = recorders[name] ?? EventRecorder()
            recorders[name] = recorder
            return recorder
        }
    }
}

/// Records all events, and checks that they follow the contract of observers.
final class EventLog: NetworkObserver {
    let events = EventRecorder<NetworkEvent>()
    private let act: @Sendable (NetworkEvent) -> Void

    init(_ act: @escaping @Sendable (NetworkEvent) -> Void = { _ in }) { self.act = act }

    func observe(_ event: NetworkEvent) {
        events.record(event)
        act(event)
    }

    var kinds: [NetworkEvent.Kind] { events.events.map(\.kind) }

    /// Waits until the given number of operations reported their end.
    func ended(_ count: Int = 1) async {
        await until { self.events.events.count { $0.kind == .operationEnded } >= count }
    }

    /// Waits until `count` operations have ended, and checks the events of all operations.
    func checkEnd(_ count: Int = 1, location: SourceLocation = #_sourceLocation) async {
        await ended(count)
        check(location: location)
    }

    /// Runs an operation, checks its events, and returns its value.
    func value<Result, Value: Sendable>(
        of operation: NetworkOperation<Result, Value>, location: SourceLocation = #_sourceLocation
    ) async throws -> Value {
        operation.addNetworkObserver(self)
        let value = try await operation.run()
        await checkEnd(location: location)
        return value
    }

    /// Checks the events of all operations.
    func check(location: SourceLocation = #_sourceLocation) {
        for (_, events) in Dictionary(grouping: events.events, by: \.operationID) {
            let problem = Self.problem(in: events)
            #expect(problem == nil, "\(problem ?? ""): \(events.map(\.kind))", sourceLocation: location)
        }
    }

    /// The problem in the events of one operation, or `nil` if they are valid.
    static func problem(in events: [NetworkEvent]) -> String? {
        guard let last = events.last, last.kind == .operationEnded else { return "no end" }
        guard events.count(where: { $0.kind == .operationEnded }) == 1 else { return "two ends" }
        guard last.ending != nil else { return "an end without a word of it" }
        if events.count == 1 { return nil }
        guard events[0].kind == .operationBegan, events.count(where: { $0.kind == .operationBegan }) == 1 else {
            return "no beginning, or two"
        }
        var (attempt, hop, number) = (false, false, 0)
        for (before, event) in zip(events, events.dropFirst()) {
            if event.moment < before.moment { return "back in time" }
            if let time = event.sinceAttemptBegan, time < .zero { return "sooner than its attempt" }
            switch event.kind {
            case .attemptBegan:
                if attempt || event.attempt != number + 1 { return "an attempt within another, or one left out" }
                (attempt, number) = (true, event.attempt)
            case .attemptEnded:
                if !attempt || hop || event.ending == nil { return "an attempt that ended wrongly" }
                attempt = false
            case .hopBegan:
                if !attempt || hop { return "a hop within another" }
                hop = true
            case .hopEnded:
                if !hop { return "a hop that had ended" }
                hop = false
            case .held, .wentOn, .sending, .bodySent, .leftBehind, .responded:
                if !attempt { return "\(event.kind) outside of an attempt" }
            case .decided: if attempt { return "decided too early" }
            case .operationEnded: if attempt || hop { return "something continues after the end" }
            default: break
            }
        }
        return nil
    }
}
