// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What is asked of the kernel and when what it says is believed: a pure value, bytes in, actions out.
///
/// It asks for links, addresses and routes, and then follows the changes. Of routes that go with an interface or an
/// address the kernel says nothing, so they are asked for again whenever something of that kind may have happened.
/// After a gap in the messages all is asked for again. What it finds is told only where there is no question open.
package struct NetlinkMachine: Sendable {
    /// What can be asked for, in this order.
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

        /// How long the part of a request is that belongs to the question.
        private var size: Int {
            switch self {
            case .links: 16
            case .addresses: 8
            case .routes: 12
            }
        }

        /// The request, for all there is.
        package func request(_ sequence: UInt32) -> [UInt8] {
            var bytes: [UInt8] = []
            func append(_ number: some FixedWidthInteger) { withUnsafeBytes(of: number) { bytes += $0 } }
            append(UInt32(16 + size))
            append(rawValue)
            // A request, for all of them.
            append(UInt16(0x301))
            append(sequence)
            append(UInt32(0))
            return bytes + [UInt8](repeating: 0, count: size)
        }
    }

    package enum Action: Sendable, Equatable {
        /// Send this.
        case send([UInt8])
        /// That is what is known now.
        case tell(Connectivity)
        /// Say when a second has passed.
        case pause
        /// The kernel answers nothing that could be used.
        case giveUp(Int32)
    }

    package private(set) var picture: NetworkTopology
    /// What is being answered; nil while only changes come.
    package private(set) var question: Question?
    private var sequence: UInt32 = 0
    /// Who we are to the kernel.
    private let port: UInt32
    /// Something changed while it was answered, so it has to be asked again.
    private var isDisturbed = false
    /// How often it was asked again because of that.
    private var repetitions = 0
    /// Messages were lost: all is to be asked for anew.
    private var isLost = false
    private var hasChanged = false
    /// An answer was taken although it may fit together badly.
    private var isDoubtful = false
    private var refusals = 0
    private var hasGivenUp = false
    /// A request could not be sent a moment ago, or what is asked for changes faster than it can be told: nothing is asked
    /// before the pause is over.
    package private(set) var isPausing = false

    /// After so many the answer is taken as it is, and all is asked for again when that was told and a pause is over.
    private static let repetitionLimit = 5
    private static let refusalLimit = 10
    /// `ENOBUFS`; with `EBUSY` that says that it is only now that it cannot be answered.
    private static let noRoom: Int32 = 105
    private static let busy: Int32 = 16
    private static let passingRefusalLimit = 1_000

    package init(port: UInt32, need: RouteNeed) {
        self.port = port
        picture = NetworkTopology(need)
    }

    /// Whether there is no question open, and none to be asked.
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
        // Nobody's messages have the number 0 but those that nobody asked for.
        if sequence == 0 { sequence = 1 }
        switch question {
        case .links: picture.removeAllLinks()
        case .addresses: picture.removeAllAddresses()
        case .routes: picture.removeAllRoutes()
        }
        return [.send(question.request(sequence))]
    }

    /// The socket had no room for all that came.
    ///
    /// Until it was read empty the kernel drops what comes, and does not say so again: nothing is asked before that.
    package mutating func messagesWereLost() { isLost = true }

    /// There is nothing more to be read for now.
    ///
    /// The kernel answers as fast as it is read, so a question that is open by then will not be answered: where there was
    /// no room, neither was there for the news that it was refused.
    package mutating func wasReadEmpty() -> [Action] {
        if hasGivenUp || isPausing { return [] }
        if question != nil { return giveUpAtLast(Self.noRoom) ?? begin() }
        return isLost || isDoubtful ? begin() : []
    }

    /// A request could not be sent: what it was for is not known, and is asked for after a pause.
    ///
    /// If nothing is to be done, a pause begins, of whose end the machine is to be told.
    package mutating func sendingFailed(_ number: Int32) -> [Action] {
        question = nil
        isLost = true
        if let actions = giveUpAtLast(number) { return actions }
        isPausing = true
        return []
    }

    /// When the socket is read empty next, all is asked for again.
    package mutating func pauseIsOver() { isPausing = false }

    /// A datagram came.
    package mutating func receive(_ datagram: ArraySlice<UInt8>) -> [Action] {
        let parsed = NetlinkParser.parse(datagram)
        var actions: [Action] = []
        // What comes after it gave up is not all there is.
        for message in parsed.messages where !hasGivenUp { actions += take(message) }
        if hasGivenUp { return actions }
        if parsed.isDamaged { isLost = true }
        if question == nil, !isLost, hasChanged {
            hasChanged = false
            actions.append(.tell(picture.connectivity))
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
            // Routes go with an interface, and those whose cable was pulled are none until it is put in again.
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

    /// Something changed, of the kind for which one asks so.
    private mutating func changed(_ kind: Question, mayTakeRoutes: Bool) -> [Action] {
        hasChanged = true
        if question == kind { isDisturbed = true }
        guard mayTakeRoutes else { return [] }
        if question == .routes { isDisturbed = true }
        // What is doubtful is asked for anyway, when the pause is over.
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
        let told = Action.tell(picture.connectivity)
        guard isDoubtful else { return [told] }
        // A router's tables may never stand still: they are not read without end.
        isPausing = true
        return [told, .pause]
    }

    private mutating func refused(_ number: Int32) -> [Action] {
        // An acknowledgement, which nobody asked for.
        guard number != 0 else { return [] }
        // It may be refused for want of room, so it is asked again when there is some.
        question = nil
        isLost = true
        return giveUpAtLast(number) ?? []
    }

    /// Nil if it is worth another try.
    private mutating func giveUpAtLast(_ number: Int32) -> [Action]? {
        refusals += 1
        let isPassing = number == Self.noRoom || number == Self.busy
        guard refusals >= (isPassing ? Self.passingRefusalLimit : Self.refusalLimit) else { return nil }
        question = nil
        hasGivenUp = true
        return [.giveUp(number)]
    }
}

/// The interfaces of a machine with their addresses and routes, and what follows from them: a pure value.
package struct NetworkTopology: Sendable, Equatable {
    package private(set) var links: [Int32: NetworkLink] = [:]
    package private(set) var addresses: [NetworkAddress.Key: NetworkAddress] = [:]
    package private(set) var routes: [NetworkRoute] = []
    /// Which routes count.
    package let need: RouteNeed

    package init(_ need: RouteNeed) {
        self.need = need
    }

    /// Whether a route could make a difference.
    package func concerns(_ route: NetworkRoute) -> Bool {
        route.type == 1 && route.table != 255 && (need == .anyRoute || route.isDefault)
    }

    package mutating func add(_ link: NetworkLink) { links[link.index] = link }

    package mutating func removeLink(_ index: Int32) {
        links[index] = nil
        addresses = addresses.filter { $0.key.link != index }
    }

    package mutating func add(_ address: NetworkAddress) { addresses[address.key] = address }
    package mutating func remove(_ address: NetworkAddress) { addresses[address.key] = nil }

    package mutating func add(_ route: NetworkRoute) {
        if concerns(route), route.leadsOut { routes.append(route) }
    }

    package mutating func removeAllLinks() { links = [:] }
    package mutating func removeAllAddresses() { addresses = [:] }
    package mutating func removeAllRoutes() { routes = [] }

    /// What all of it comes to: there is a way out if an interface other than loopback runs and has a route, and some
    /// interface has an address of the same version of IP that can be used.
    package var connectivity: Connectivity {
        // Requests are sent from an address of another interface if their own has none, which may be so on purpose.
        let families = Set(addresses.values.filter(\.isUsable).map(\.key.family))
        var ways: [(priority: UInt32, link: NetworkLink)] = []
        for link in links.values where link.isRunning && !link.isLoopback {
            let best = routes.filter { route in
                families.contains(route.family) && (route.links.isEmpty || route.links.contains(link.index))
            }.map(\.priority).min()
            if let best { ways.append((best, link)) }
        }
        ways.sort { ($0.priority, $0.link.index) < ($1.priority, $1.link.index) }
        var kinds: [Connectivity.Interface] = []
        for way in ways where !kinds.contains(way.link.kind) { kinds.append(way.link.kind) }
        return Connectivity(ways.isEmpty ? .unsatisfied : .satisfied, interfaces: kinds)
    }
}
