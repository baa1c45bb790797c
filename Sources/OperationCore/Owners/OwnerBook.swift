// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Whose are which operations, as a value: entering and leaving cost the same whatever the number of both.
///
/// It knows nothing of locks, but they shape it: a weak reference is only loaded where the caller holds the object, or
/// the object is handed out, so that nothing of the user's is freed under a lock.
package struct OwnerBook {
    /// Those whose operations are asked for.
    package enum Query {
        /// An object, which may be in its `deinit`, where no weak reference leads to it any more.
        case object(AnyObject, mayBeInDeinit: Bool)
        /// An object that was freed.
        case gone(ObjectIdentifier)
        case name(String)
    }

    package struct Answer {
        package var members: [OwnerMembership] = []
        /// Met on the way, and to be let go of outside every lock.
        var stranger: AnyObject?
    }

    private var groups: [OwnerKey: OwnerGroup] = [:]
    /// How many memberships were looked at to answer queries.
    package private(set) var visits = 0

    package init() {}

    package var groupCount: Int { groups.count }

    /// Enters a membership, unless it was taken back before.
    ///
    /// - Parameter owner: The owner, where it is an object. One that is gone gets no entry: its operations are cancelled
    ///   when they are started.
    package mutating func enter(_ membership: OwnerMembership, owner: AnyObject?) {
        guard case .outside = membership.place else { return }
        let key = membership.owner.key
        if case .object = key, owner == nil { return membership.place = .withdrawn }
        let group = self.group(at: key, of: owner) ?? OwnerGroup(membership.owner)
        groups[key] = group
        group.append(membership)
    }

    /// Takes a membership back.
    package mutating func withdraw(_ membership: OwnerMembership) {
        guard case .member(let group, let position) = membership.place else {
            return membership.place = .withdrawn
        }
        membership.place = .withdrawn
        group.remove(at: position)
        guard group.isEmpty else { return }
        // The group of an object that is gone may have made room for that of another at the same address.
        let key = membership.owner.key
        if groups[key] === group { groups[key] = nil }
    }

    /// The memberships of an owner, in the order in which they came.
    ///
    /// In storage of its own: it is read after the lock was given back, and shared storage would have to be copied by the
    /// next change.
    package mutating func answer(_ query: Query) -> Answer {
        var answer = Answer()
        switch query {
        case .name(let name): answer.members = groups[.name(name)]?.members ?? []
        case .object(let object, let mayBeInDeinit):
            let key = OwnerKey.object(ObjectIdentifier(object))
            let group = group(at: key, of: object) ?? (mayBeInDeinit ? self.group(at: key, of: nil) : nil)
            answer.members = group?.members ?? []
        case .gone(let identity):
            guard let group = groups[.object(identity)] else { break }
            answer.stranger = group.owner.liveObject
            if answer.stranger == nil { answer.members = group.members }
        }
        visits += answer.members.count
        return answer
    }

    /// The group of a name or of just this object, not of another one that has or had its address.
    private func group(at key: OwnerKey, of owner: AnyObject?) -> OwnerGroup? {
        guard let group = groups[key], group.owner.liveObject === owner else { return nil }
        return group
    }
}
