// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Makes the bytes of a request's body at the pace at which they are sent.
///
/// It is asked again and again, on threads of the session but never by two at once, until it says that it is at its end
/// or fails, or until the transfer is over and lets go of it. It must not block: one that has nothing yet says so, and
/// wakes the transfer when it has.
public protocol BodyProducer: AnyObject, Sendable {
    /// Writes the next bytes into `buffer`, from its beginning.
    ///
    /// - Parameters:
    ///   - buffer: Where to; never empty.
    ///   - waker: Wakes the transfer after ``BodyPortion/notYet`` was returned; it may be kept and called from anywhere.
    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion
}

/// What a ``BodyProducer`` gave.
///
/// No case will be added.
public enum BodyPortion: Sendable, Hashable {
    /// So many bytes, at least one.
    case bytes(Int)
    /// Nothing at present: ask again after the waker was called.
    case notYet
    /// All was given before.
    case end
}

/// Tells a transfer that its body has more bytes.
public struct BodyWaker: Sendable {
    private let action: @Sendable () -> Void

    /// Makes a waker, for sessions of your own and for tests.
    public init(_ action: @escaping @Sendable () -> Void) {
        self.action = action
    }

    /// Lets the transfer ask again: from any thread, any number of times, also too early or too late.
    public func wake() { action() }
}
