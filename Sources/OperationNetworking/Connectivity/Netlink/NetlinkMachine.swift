// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A state machine for the requests to the kernel and their replies, with bytes as input and actions as output.
///
/// The machine requests links, addresses and routes, and then follows the changes. The kernel does not report the
/// removal of routes together with an interface or address. So the machine requests the routes again after each such
/// change. After lost messages, it requests everything again. It reports its findings only when no request is open.
package struct NetlinkMachine: Sendable {
    /// The kinds of requests, in their order.
    package enum Question: UInt16, Sendable, CaseIterable {
        case links = 18
        case addresses = 22
        case routes = 26

        fileprivate var next: Question? {
            switch self {
            case .links: .addresses
            case .addresses: .routes
            case .routes: nil
            }
        }

        /// The length of the part of a request that depends on its kind.
        private var size: Int {
            switch self {
            case .links: 16
            case .addresses: 8
            case .routes: 12
            }
        }

        /// Returns the request for all objects of the kind.
        package func request(_ sequence: UInt32) -> [UInt8] {
            var bytes: [UInt8] = []
            func append(_ number: some FixedWidthInteger) { withUnsafeBytes(of: number) { bytes += $0 } }
            append(UInt32(16 + size))
            append(rawValue)
            // NLM_F_REQUEST and NLM_F_DUMP.
            append(UInt16(0x301))
            append(sequence)
            append(UInt32(0))
            return bytes + [UInt8](repeating: 0, count: size)
        }
    }

    package enum Action: Sendable, Equatable {
        /// Send these bytes.
        case send([UInt8])
        /// Report the current state.
        case notify(Connectivity)
        /// Call the machine again after a second.
        case pause
        /// End the observation, because the kernel sends no usable replies.
        case giveUp(Int32)
    }

    package private(set) var picture: NetworkTopology
    /// The request whose replies are arriving, or nil while only changes arrive.
    package private(set) var question: Question?
    private var sequence: UInt32 = 0
    /// The port that identifies this socket to the kernel.
    private let port: UInt32
    /// Whether something changed during the replies, so that the request must be repeated.
    private var isDisturbed = false
    /// The number of repetitions because of such changes.
    private var repetitions = 0
    /// Whether messages were lost, so that everything must be requested again.
    private var isLost = false
    private var hasChanged = false
    /// Whether replies were accepted although they may be inconsistent.
    private var isDoubtful = false
    private var refusals = 0
    private var hasGivenUp = false
    /// Whether the machine sends no request until a pause is over, because a request could not be sent or the state
    /// changes too fast.
    package private(set) var isPausing = false

    /// The number of repetitions after which inconsistent replies are accepted, reported, and requested again after a
    /// pause.
    private static let repetitionLimit = 5
    private static let refusalLimit = 10
    /// `ENOBUFS`, which like `EBUSY` indicates a temporary failure.
    private static let noRoom: Int32 = 105
    private static let busy: Int32 = 16
    private static let passingRefusalLimit = 1_000

    package init(port: UInt32, need: RouteNeed) {
        self.port = port
        picture = NetworkTopology(need)
    }

    /// Whether no request is open or necessary.
    package var isSettled: Bool { question == nil && sequence != 0 && !isLost && !isDoubtful }

    package mutating func begin() -> [Action] {
        isLost = false
        isDoubtful = false
        return ask(.links)
    }

    private mutating func ask(_ question: Question) -> [Action] {
        self.question = question
        isDisturbed = false
        sequence &+= 1
        // Messages without a request have the number 0.
        if sequence == 0 { sequence = 1 }
        switch question {
        case .links: picture.removeAllLinks()
        case .addresses: picture.removeAllAddresses()
        case .routes: picture.removeAllRoutes()
        }
        return [.send(question.request(sequence))]
    }

    /// Records that the receive buffer overflowed.
    ///
    /// The kernel drops messages until the socket was read empty, and reports this only once. So the machine sends no
    /// request before that.
    package mutating func messagesWereLost() { isLost = true }

    /// Records that there is nothing more to read for now.
    ///
    /// The kernel replies as fast as the socket is read. So an open request will not be answered, because the message
    /// about its failure was dropped too.
    package mutating func wasReadEmpty() -> [Action] {
        if hasGivenUp || isPausing { return [] }
        if question != nil { return giveUpAtLast(Self.noRoom) ?? begin() }
        return isLost || isDoubtful ? begin() : []
    }

    /// Records that a request could not be sent, so that everything is requested again after a pause.
    ///
    /// If the returned array is empty, the caller must start a pause and call ``pauseIsOver()`` after it.
    package mutating func sendingFailed(_ number: Int32) -> [Action] {
        question = nil
        isLost = true
        if let actions = giveUpAtLast(number) { return actions }
        isPausing = true
        return []
    }

    /// Ends the pause, so that everything is requested when the socket is next read empty.
    package mutating func pauseIsOver() { isPausing = false }

    /// Processes a datagram.
    package mutating func receive(_ datagram: ArraySlice<UInt8>) -> [Action] {
        let parsed = NetlinkParser.parse(datagram)
        var actions: [Action] = []
        // The messages after the end of the observation are incomplete.
        for message in parsed.messages where !hasGivenUp { actions += take(message) }
        if hasGivenUp { return actions }
        if parsed.isDamaged { isLost = true }
        if question == nil, !isLost, hasChanged {
            hasChanged = false
            actions.append(.notify(picture.connectivity))
        }
        return actions
    }

    private mutating func take(_ message: NetlinkMessage) -> [Action] {
        let isAnswer = question != nil && message.port == port && message.sequence == sequence
        if isAnswer, message.isInconsistent { isDisturbed = true }
        switch message.content {
        case .link(let link):
            let before = picture.links[link.index]
            picture.add(link)
            // The routes of an interface disappear with it. Its routes are inactive while the cable is unplugged.
            let mayTakeRoutes = before?.isUp != link.isUp || before?.isRunning != link.isRunning
            return isAnswer ? [] : changed(.links, mayTakeRoutes: mayTakeRoutes)
        case .linkGone(let index):
            picture.removeLink(index)
            return changed(.links, mayTakeRoutes: true)
        case .address(let address):
            picture.add(address)
            return isAnswer ? [] : changed(.addresses, mayTakeRoutes: false)
        case .addressGone(let address):
            picture.remove(address)
            return changed(.addresses, mayTakeRoutes: true)
        case .route(let route), .routeGone(let route):
            if isAnswer {
                picture.add(route)
                return []
            }
            return picture.concerns(route) ? changed(.routes, mayTakeRoutes: true) : []
        case .done: return isAnswer ? answered() : []
        case .refused(let number): return isAnswer ? refused(number) : []
        case .lost:
            isLost = true
            return []
        case .other: return []
        }
    }

    /// Records a change in the objects of a kind.
    private mutating func changed(_ kind: Question, mayTakeRoutes: Bool) -> [Action] {
        hasChanged = true
        if question == kind { isDisturbed = true }
        guard mayTakeRoutes else { return [] }
        if question == .routes { isDisturbed = true }
        // Inconsistent replies are requested again anyway after the pause.
        return question == nil && !isLost && !isDoubtful ? ask(.routes) : []
    }

    private mutating func answered() -> [Action] {
        refusals = 0
        guard let question else { return [] }
        if isLost {
            self.question = nil
            return []
        }
        if isDisturbed, repetitions < Self.repetitionLimit {
            repetitions += 1
            return ask(question)
        }
        repetitions = 0
        if isDisturbed { isDoubtful = true }
        if let next = question.next { return ask(next) }
        self.question = nil
        hasChanged = false
        let reported = Action.notify(picture.connectivity)
        guard isDoubtful else { return [reported] }
        // The tables of a router may change constantly, so they are not read in an endless loop.
        isPausing = true
        return [reported, .pause]
    }

    private mutating func refused(_ number: Int32) -> [Action] {
        // The number 0 is an acknowledgement that was not requested.
        guard number != 0 else { return [] }
        // The failure may be a lack of memory, so the request is repeated later.
        question = nil
        isLost = true
        return giveUpAtLast(number) ?? []
    }

    /// Returns the action that ends the observation, or nil if another try is worthwhile.
    private mutating func giveUpAtLast(_ number: Int32) -> [Action]? {
        refusals += 1
        let isPassing = number == Self.noRoom || number == Self.busy
        guard refusals >= (isPassing ? Self.passingRefusalLimit : Self.refusalLimit) else { return nil }
        question = nil
        hasGivenUp = true
        return [.giveUp(number)]
    }
}
