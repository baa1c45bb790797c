// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why an operation was cancelled, in a form for programs (``code``) and one for people (``message``).
///
/// A cause may have a cause: an operation that was cancelled because its dependency timed out carries the timeout as
/// its ``underlyingCause``, or as ``underlyingError`` what made the dependency fail.
public struct CancellationCause: Sendable, Equatable, CustomStringConvertible {
    /// The kind of the cause.
    public var code: Code { storage.code }

    /// What happened and what to do about it, as a sentence.
    public var message: String {
        guard let place = storage.place else { return storage.message }
        return storage.message.replacing("{group}", with: "\(place)")
    }

    /// The names of the groups, from the outermost inwards, where the cancellation came from a group; nil if from elsewhere.
    ///
    /// The last one is the group that cancelled its children. Of groups that are nested very deep the outer ones are left out.
    public var path: [String]? { storage.place?.names }

    /// The error from which this cancellation follows, such as that of a dependency that failed.
    public var underlyingError: (any Error)? { storage.underlyingError }

    /// The cancellation from which this one follows, such as that of a dependency.
    ///
    /// Along a chain of more than sixteen, those in the middle are left out and the first one is kept.
    public var underlyingCause: CancellationCause? { storage.underlyingCause }

    /// One line for a log: the kind, the sentence, and the causes beneath.
    public var description: String {
        let beneath = underlyingCause.map { " ← \($0)" } ?? underlyingError.map { " ← \($0)" } ?? ""
        return "[\(code)] \(message)\(beneath)"
    }

    /// Causes are equal when their kinds and sentences are.
    public static func == (left: CancellationCause, right: CancellationCause) -> Bool {
        left.storage === right.storage || (left.code == right.code && left.message == right.message)
    }

    /// Makes a cause of your own.
    public init(
        code: Code,
        message: String,
        underlyingError: (any Error)? = nil,
        underlyingCause: CancellationCause? = nil
    ) {
        storage = Storage(
            code: code, message: message, underlyingError: underlyingError, underlyingCause: underlyingCause)
    }

    /// A cause that comes from a group, whose path stands for "{group}" in the sentence.
    init(
        code: Code, message: String, place: GroupPlace, underlyingError: (any Error)? = nil,
        underlyingCause: CancellationCause? = nil
    ) {
        storage = Storage(
            code: code, message: message, underlyingError: underlyingError, underlyingCause: underlyingCause,
            place: place)
    }

    /// The cause with which it all began.
    private var root: CancellationCause {
        var root = self
        while let next = root.underlyingCause { root = next }
        return root
    }

    // One word in each operation, and nothing allocated for the most frequent cause.
    private let storage: Storage

    private final class Storage: Sendable {
        let code: Code
        let message: String
        let underlyingError: (any Error)?
        let underlyingCause: CancellationCause?
        /// The group from which it comes; put into words only where somebody reads them.
        let place: GroupPlace?

        /// How many causes lie beneath: bounded, so that freeing and describing them takes no deep stack.
        let depth: Int

        init(
            code: Code, message: String, underlyingError: (any Error)?, underlyingCause: CancellationCause?,
            place: GroupPlace? = nil
        ) {
            self.code = code
            self.place = place
            self.message = message
            self.underlyingError = underlyingError
            let isTooDeep = underlyingCause.map { $0.storage.depth >= 16 } ?? false
            self.underlyingCause = isTooDeep ? underlyingCause?.root : underlyingCause
            depth = self.underlyingCause.map { $0.storage.depth + 1 } ?? 0
        }
    }
}
