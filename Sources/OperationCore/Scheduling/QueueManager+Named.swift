// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The name of a queue that is defined up front and found everywhere by that name.
///
/// ```swift
/// extension QueueName {
///     static let images: QueueName = "images"
/// }
///
/// try QueueManager.define(.images, width: 4)
/// let load = ClosureOperation { 42 }
/// try QueueManager.named(.images).add(load)
/// ```
public struct QueueName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name itself.
    public let description: String

    /// Makes a name from any text, such as one of a configuration file.
    public init(_ text: String) { description = text }

    /// Makes a name from a literal.
    public init(stringLiteral text: String) { description = text }
}

extension QueueManager {
    private static let defined = Locked<[QueueName: QueueManager]>([:])

    /// Defines a queue of the process, to be found by its name from now on.
    ///
    /// - Throws: If there is one of that name, or the width is below one.
    @discardableResult
    public static func define(_ name: QueueName, width: Int? = nil) throws(QueueError) -> QueueManager {
        if let width, width < 1 { throw .badWidth(width, queue: name.description) }
        let queue = QueueManager(name.description, width: width)
        let isNew = defined.withLock { defined in
            guard defined[name] == nil else { return false }
            defined[name] = queue
            return true
        }
        guard isNew else {
            throw QueueError(
                .name, queue: name.description,
                "A queue named \(name) is defined already. Define each once, and find it by `named(_:)`.")
        }
        return queue
    }

    /// The queue of that name.
    ///
    /// - Throws: If none was defined; the error says which were.
    public static func named(_ name: QueueName) throws(QueueError) -> QueueManager {
        let (queue, names) = defined.withLock { ($0[name], $0.keys) }
        if let queue { return queue }
        let known = names.isEmpty ? "none" : names.map(\.description).sorted().joined(separator: ", ")
        throw QueueError(
            .name, queue: name.description,
            "No queue is named \(name). Define it before it is used, by `define(_:)`. Defined are: \(known).")
    }

    /// The names of the queues that are defined, sorted.
    public static var definedNames: [QueueName] {
        defined.withLock { Array($0.keys) }.sorted { $0.description < $1.description }
    }

    /// Forgets the queue of that name, which runs what it has; returns it if there was one.
    @discardableResult
    public static func undefine(_ name: QueueName) -> QueueManager? {
        defined.withLock { $0.removeValue(forKey: name) }
    }
}
