// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Children that gave no result, and for which there may be a way out.
extension GroupMachine {
    /// The child ended without a result, and it is to be seen whether it can be recovered: it takes no place meanwhile,
    /// and the group does not end before `replace` or `ended` is said of it.
    ///
    /// - Returns: Whether that makes sense: not if the group is cancelled with the child.
    package mutating func beginRecovery(_ slot: Slot) -> Bool {
        switch phase {
        case .running, .closing: break
        case .dooming where isShielded(slot): break
        case .collecting, .dooming, .over: return false
        }
        switch entries[Int(slot)].stage {
        case .free, .recovering: return false
        case .blocked: break
        case .waiting: waiting -= 1
        case .active: active -= 1
        }
        entries[Int(slot)].stage = .recovering
        return true
    }

    /// Another operation takes the place of the child; false if that is not being recovered.
    package mutating func replace(_ slot: Slot, isReady: Bool) -> Bool {
        guard isRecovering(slot) else { return false }
        entries[Int(slot)].stage = .blocked
        if isReady { becameReady(slot) }
        return true
    }

    /// Whether the child ended, and it is being seen whether it can be recovered.
    package func isRecovering(_ slot: Slot) -> Bool { entries[Int(slot)].stage == .recovering }
}
