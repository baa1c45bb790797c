// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A result or an error whose type only its owner knows: small plain values as they are, all others on the heap.
///
/// It keeps what does not depend on the types of an operation free of them: see ``TypedOperation``.
struct OutcomeBox: @unchecked Sendable {
    // Sendable: what it holds is Sendable, and does not change between `init` and `free`, of which the owner makes sure that
    // nobody reads any more.

    /// The bits of the value, or of the pointer to it.
    private var word: UInt

    init<Value: Sendable>(_ value: Value) {
        word = 0
        if Self.isInline(Value.self) {
            withUnsafeMutablePointer(to: &word) {
                UnsafeMutableRawPointer($0).assumingMemoryBound(to: Value.self).initialize(to: value)
            }
        } else {
            let pointer = UnsafeMutablePointer<Value>.allocate(capacity: 1)
            pointer.initialize(to: value)
            word = UInt(bitPattern: pointer)
        }
    }

    /// The value, of the type with which the box was made.
    func value<Value>(as type: Value.Type) -> Value {
        if Self.isInline(type) {
            return withUnsafePointer(to: word) { UnsafeRawPointer($0).assumingMemoryBound(to: type).pointee }
        }
        return Self.pointer(word, to: type).pointee
    }

    func free<Value>(as type: Value.Type) {
        guard !Self.isInline(type) else { return }
        let pointer = Self.pointer(word, to: type)
        pointer.deinitialize(count: 1)
        pointer.deallocate()
    }

    /// Whether values of the type need no more than a word and no more than the copying of their bits.
    private static func isInline<Value>(_ type: Value.Type) -> Bool {
        MemoryLayout<Value>.size <= MemoryLayout<UInt>.size
            && MemoryLayout<Value>.alignment <= MemoryLayout<UInt>.alignment && _isPOD(type)
    }

    private static func pointer<Value>(_ word: UInt, to type: Value.Type) -> UnsafeMutablePointer<Value> {
        // `word` is the address of a value that `init` put there.
        UnsafeMutablePointer(bitPattern: word).unsafelyUnwrapped
    }
}
