// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Is told what network operations do: what logs, meters, traces and archives are made of.
///
/// ```swift
/// final class Counting: NetworkObserver {
///     func observe(_ event: NetworkEvent) {
///         if event.kind == .attemptEnded { print(event) }
///     }
/// }
///
/// func watch(_ shop: inout NetworkBase) { shop.observers.append(Counting()) }
/// ```
///
/// Add one to an operation (`addNetworkObserver`), to all of a service (`NetworkBase.observers`), or to all that begin
/// beneath a group (`group.addNetworkObserver`). An object is told once of each event, however often it was added, and so is
/// a ``NetworkLog``, of which all copies that write the same count as one.
///
/// - Order: The events of one operation come one after the other, never two at once, in the order in which things happened.
///   Those of different operations come whenever they like, at the same time, too.
/// - Thread: That on which it happened, or that which was telling an earlier event of the same operation. It may be the
///   session's, which all its tasks share, or the queue on which a cache or a download has its files: return soon, and
///   never wait there.
/// - Locks: None is held. The observer may do with the operation what it likes, cancel it for instance; what follows from
///   that is told when it returns.
/// - Ends: Each `operationBegan` is followed by one `operationEnded`, each `attemptBegan` by one `attemptEnded`, and each
///   `hopBegan` by one `hopEnded`, also where the operation is cancelled, whenever that is. `operationEnded` is the last
///   event. An operation that ends before it began tells nothing else.
/// - Life: An event does not keep its operation alive. The operation keeps its observers until it has told its end.
/// - Cost: An operation without observers makes no event.
public protocol NetworkObserver: Sendable {
    /// Something happened.
    func observe(_ event: NetworkEvent)
}

extension AnyNetworkOperation {
    /// Has the observer told what the operation does; to be called before the start.
    public func addNetworkObserver(_ observer: any NetworkObserver) {
        if state == .notStarted, networkAttempts.add(observer, of: self) { return }
        OperationDiagnostics.report(
            .timing, by: self, "An observer came after the start and is told nothing. Add it before.")
    }

    /// Has the observer told nothing more of the operation, but for an event that is being told just now.
    ///
    /// An object is known again, and a ``NetworkLog`` by its copies that write the same; other values are not.
    public func removeNetworkObserver(_ observer: any NetworkObserver) { networkAttempts.remove(observer) }
}

extension GroupOperation {
    /// Has the observer told what the network operations beneath the group do that begin from now on.
    ///
    /// It stands beside their own, those of their service and those of groups around this one. An operation that ends before
    /// it began is not told of. After the end of the group there is nothing to tell.
    public func addNetworkObserver(_ observer: any NetworkObserver) {
        if groupEngine?.add(observer) == true { return }
        OperationDiagnostics.report(
            .timing, by: self, "An observer came after the end of the group and is told nothing. Add it before.")
    }

    /// Has the observer told nothing of the network operations beneath the group that begin from now on.
    ///
    /// It is told the rest of what began. An object is known again, and a ``NetworkLog`` by its copies that write the same;
    /// other values are not.
    public func removeNetworkObserver(_ observer: any NetworkObserver) { groupEngine?.remove(observer) }
}

extension GroupScope {
    /// Has the observer told what the network operations beneath the group do that begin from now on.
    ///
    /// The same as that of the group, see ``GroupOperation/addNetworkObserver(_:)``; one that comes after its end is told
    /// nothing.
    public func addNetworkObserver(_ observer: any NetworkObserver) { engine.add(observer) }

    /// Has the observer told nothing of the network operations beneath the group that begin from now on.
    ///
    /// The same as that of the group, see ``GroupOperation/removeNetworkObserver(_:)``.
    public func removeNetworkObserver(_ observer: any NetworkObserver) { engine.remove(observer) }
}

extension GroupEngine {
    @discardableResult
    fileprivate func add(_ observer: any NetworkObserver) -> Bool {
        GroupNetworkPolicies.noteObserver()
        return changeOffer(from: GroupNetworkPolicies()) { $0.observers.append(observer) }
    }

    fileprivate func remove(_ observer: any NetworkObserver) {
        changeOffer(from: GroupNetworkPolicies()) { policies in
            policies.observers = policies.observers.filter { !NetworkObservation.isSame($0, observer) }
        }
    }
}
