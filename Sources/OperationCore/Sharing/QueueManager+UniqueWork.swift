// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension QueueManager {
    /// Adds an operation of which only one with the same key is to run at a time in this queue.
    ///
    /// ```swift
    /// let queue = QueueManager("sync")
    /// let upload = ClosureOperation { print("uploading") }
    /// try queue.addUnique(upload, key: "upload", policy: .keep)
    /// ```
    ///
    /// What becomes of those that are present with the key, and of this one, is up to the policy, whatever the policies
    /// were with which they came.
    ///
    /// - Parameters:
    ///   - operation: A new operation.
    ///   - key: Any hashable value; counts in this queue only. Its `==` and `hash(into:)` are called under a lock, so they
    ///     must do nothing but compare and hash.
    ///   - policy: Who gives way to whom.
    /// - Returns: False if the operation was cancelled, and ended, because another one is present and is kept.
    /// - Throws: As `add` does; with the code `cycle` if one that is present, and stays, waits for the operation.
    @discardableResult
    public func addUnique(
        _ operation: ManagedOperation, key: some Hashable & Sendable, policy: UniqueWorkPolicy
    ) throws(QueueError) -> Bool {
        try engine.uniqueWork.add(operation, UniqueWorkKey(key), policy, queue: engine.name) { () throws(QueueError) in
            try add(operation)
        }
    }

    /// The same as soon as there is room; what becomes of those that are present is decided then.
    ///
    /// - Returns: False if the operation was cancelled, and ended, because another one is present and is kept.
    /// - Throws: As ``addUnique(_:key:policy:)`` does; with the code `cancelled` if the task is cancelled while it waits.
    @discardableResult
    public func addUniqueWhenThereIsRoom(
        _ operation: ManagedOperation, key: some Hashable & Sendable, policy: UniqueWorkPolicy
    ) async throws(QueueError) -> Bool {
        let key = UniqueWorkKey(key)
        return try await engine.whenThereIsRoom(for: 1, toAdd: operation.displayName) { hasPlace throws(QueueError) in
            var isPlaceLeft = hasPlace
            defer { if isPlaceLeft { engine.giveBackPlaces(1) } }
            return try engine.uniqueWork.add(operation, key, policy, queue: engine.name) { () throws(QueueError) in
                isPlaceLeft = false
                try engine.add(operation, hasPlace: hasPlace)
            }
        }
    }
}
