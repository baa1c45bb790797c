// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The operations of one owner that have not ended, in the order in which they came.
///
/// Not Sendable on purpose: only touched under the lock of the registry.
final class OwnerGroup {
    let owner: OperationOwner
    /// Who left leaves a gap, so that the others keep their order and their positions.
    private var places: [OwnerMembership?] = []
    private var count = 0

    init(_ owner: OperationOwner) { self.owner = owner }

    var isEmpty: Bool { count == 0 }

    /// In storage of its own: it is read after the lock was given back.
    var members: [OwnerMembership] { places.compactMap { $0 } }

    func append(_ membership: OwnerMembership) {
        membership.place = .member(self, places.count)
        places.append(membership)
        count += 1
    }

    func remove(at position: Int) {
        places[position] = nil
        count -= 1
        while case .some(.none) = places.last { places.removeLast() }
        closeGaps()
    }

    /// Once most places are gaps, so that coming and going for ever takes no memory.
    private func closeGaps() {
        guard places.count > 32, places.count > 2 * count else { return }
        places.removeAll { $0 == nil }
        for (position, membership) in places.enumerated() { membership?.place = .member(self, position) }
    }
}
