// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit

// The actions of the operation around the state machine.
extension AttemptWorld {
    mutating func move(_ index: Int, _ event: (inout AttemptMachine) -> AttemptMachine.Action) {
        guard actors[index].outcome == nil else { return }
        let action = event(&actors[index].machine)
        if action != .none { actors[index].action = action }
    }

    mutating func act(_ index: Int) {
        let action = actors[index].action
        actors[index].action = .none
        switch action {
        case .none, .resumeOrSuspendTask: break
        case .prepare:
            if !actors[index].hasPlace { faults.append("\(index) works without a place") }
            let fails = generator.chance(1, in: 30)
            move(index) { fails ? $0.failed($0.attempt) : $0.prepared($0.attempt, isGated: true) }
            if fails { (actors[index].used, actors[index].rejectedAt, actors[index].replays) = (nil, nil, 0) }
        case .clear: clear(index)
        case .createTask:
            let instead = actors[index].machine.creation()
            guard instead == .createTask else {
                actors[index].action = instead
                break
            }
            // A refresh may happen between the clearance and this call, as on two threads, but no suspension.
            if actors[index].wasSuspended, realm.version != actors[index].used {
                faults.append("\(index) leaves with a credential of before it was suspended")
            }
            actors[index].sends += 1
            actors[index].isInFlight = true
            move(index) { $0.created($0.attempt) }
        case .evaluate: move(index) { $0.evaluated($0.attempt) }
        case .decide: decide(index)
        case .wait(let pause):
            actors[index].hasPlace = false
            actors[index].pauseEnds = now.advanced(by: pause)
        case .rest: actors[index].hasPlace = false
        case .takeSlot:
            actors[index].hasPlace = true
            move(index) { $0.returned($0.attempt) }
        case .conclude: end(index, actors[index].used == nil ? .failure("no credential") : .success)
        }
    }

    mutating func end(_ index: Int, _ outcome: Outcome) {
        guard actors[index].outcome == nil else { return faults.append("\(index) ends twice") }
        _ = actors[index].machine.end()
        actors[index].outcome = outcome
        actors[index].action = .none
        actors[index].isInFlight = false
        actors[index].pauseEnds = nil
        if let ticket = actors[index].ticket { _ = realm.leave(ticket) }
        actors[index].ticket = nil
    }

    mutating func clear(_ index: Int) {
        actors[index].used = nil
        let round = actors[index].machine.round
        // As the shell asks.
        let present = realm.current(now: now)
        let (answer, actions) =
            present.map { (Realm.Answer.give($0.credential, version: $0.version), []) }
            ?? realm.want(index, now: now)
        switch answer {
        case .give(let token, let version):
            if realm.isRefreshing { faults.append("\(index) got a credential during a refresh") }
            if isSignedOut { faults.append("\(index) got a credential after signing out") }
            if token != lastToken { faults.append("\(index) got an old credential") }
            if rejected.contains(version) { faults.append("\(index) got a credential that was rejected") }
            actors[index].used = version
            actors[index].token = token
            actors[index].wasSuspended = false
            move(index) { $0.cleared(round) }
        case .wait(let ticket):
            wait(index, ticket, .clear(round: round))
            move(index) { $0.held(Self.reason, round) }
        case .fail, .replay, .refuse:
            move(index) { $0.refused(round) }
        }
        perform(actions)
    }

    mutating func wait(_ index: Int, _ ticket: UInt64, _ question: Question) {
        actors[index].ticket = ticket
        actors[index].question = question
    }

    mutating func answer(_ index: Int) {
        actors[index].isInFlight = false
        if actors[index].token != goodToken {
            noteHead(index)
            move(index) { $0.failed($0.attempt) }
        } else if generator.chance(1, in: 4) {
            // For example, a 503 response.
            actors[index].used = nil
            move(index) { $0.failed($0.attempt) }
        } else {
            move(index) { $0.transferred($0.attempt) }
        }
    }

    /// The headers of a rejection arrive before the attempt has failed.
    mutating func noteHead(_ index: Int) {
        guard let version = actors[index].used, actors[index].outcome == nil else { return }
        let isSecond = actors[index].rejectedAt.map { version > $0 } ?? false
        actors[index].rejectedAt = actors[index].rejectedAt ?? realm.version
        if !isSecond { perform(realm.recordRejection(version, now: now)) }
    }

    mutating func decide(_ index: Int) {
        let number = actors[index].machine.attempt
        guard let version = actors[index].used else {
            (actors[index].rejectedAt, actors[index].replays) = (nil, 0)
            actors[index].failures += 1
            let counted = number - actors[index].machine.replays
            let mayRepeat = counted < 3
            return move(index) { $0.decided(mayRepeat ? .again(after: .seconds(1)) : .fail, number) }
        }
        let isSecond = actors[index].rejectedAt.map { version > $0 } ?? false
        let (answer, actions) = realm.reject(version, isSecond: isSecond, index, now: now)
        switch answer {
        case .give, .replay:
            if isSecond { faults.append("\(index) is replayed though it had a fresh credential") }
            noteReplay(index)
            move(index) { $0.decided(.replay(after: .zero), number) }
        case .wait(let ticket):
            if isSecond { faults.append("\(index) is paused although it had a fresh credential") }
            noteReplay(index)
            rejected.insert(version)
            wait(index, ticket, .decide(number: number))
            move(index) { $0.decided(.pause(Self.reason), number) }
        case .fail, .refuse:
            actors[index].used = nil
            move(index) { $0.decided(.fail, number) }
        }
        perform(actions)
    }

    /// One replay with the current credential, and one with a fresh credential.
    mutating func noteReplay(_ index: Int) {
        actors[index].replays += 1
        if actors[index].replays > 2 { faults.append("\(index) is replayed \(actors[index].replays) times") }
    }

    static let reason = WaitReason(.credential, "waiting for a credential")

    mutating func perform(_ actions: [Realm.Action]) {
        for action in actions {
            switch action {
            case .refresh(let number, _):
                guard canRefresh else { continue }
                refreshCount += 1
                refreshes.insert(number)
            case .dropRefresh(let number):
                if refreshes.remove(number) != nil { lateRefreshes.insert(number) }
            case .release(let indices): for index in indices { settle(index, isReleased: true) }
            case .fail(let indices, _): for index in indices { settle(index, isReleased: false) }
            }
        }
    }

    mutating func settle(_ index: Int, isReleased: Bool) {
        guard actors[index].ticket != nil else { return faults.append("\(index) does not wait") }
        actors[index].ticket = nil
        switch actors[index].question {
        case .clear(let round): move(index) { isReleased ? $0.released(round) : $0.refused(round) }
        case .decide(let number):
            if !isReleased { actors[index].used = nil }
            move(index) { $0.decided(isReleased ? .replay(after: .zero) : .fail, number) }
        case nil: faults.append("\(index) was not asked")
        }
    }
}
