// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

/// An object that owns operations.
final class Screen: Sendable {}

extension HandDriven {
    /// Starts the operation with an owner that is freed immediately afterward.
    func startWithBriefOwner(_ makeOwner: @autoclosure () -> AnyObject = Screen()) {
        autoreleasing {
            let screen = makeOwner()
            owner = .object(screen)
            start()
        }
    }
}

/// An owner that cancels its operations in its `deinit`.
final class TidyScreen: Sendable {
    private let count: Tally

    init(count: Tally = Tally()) { self.count = count }

    deinit { count.add(OperationOwner.cancelOperations(ownedBy: self)) }
}

/// An owner that holds a token.
final class TokenScreen: Sendable {
    let operations = OperationOwnerToken()
}

/// An owner that holds a token made for itself.
final class OwnTokenScreen {
    private(set) var token: OperationOwnerToken?

    init() { token = OperationOwnerToken(for: self) }

    func replaceToken() { token = OperationOwnerToken(for: self) }
}
