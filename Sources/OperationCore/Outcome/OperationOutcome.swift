// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The outcome of an operation, which is a result, an error or a cancellation.
///
/// Each operation has exactly one outcome. If an event outside the operation's work, such as a timeout, ends the
/// operation, the outcome is a cancellation with a ``CancellationCause``. The outcome is also a cancellation if the
/// work ends without a result or an error.
///
/// The operations from this package use error types such as ``FileOperationError``. In your own operations, you can use
/// your own error type.
///
/// Only a major version may add cases.
public enum OperationOutcome<ResultType, ErrorType: Error> {
    /// The operation succeeded with a result.
    case success(ResultType)
    /// The operation failed with an error.
    case failure(ErrorType)
    /// The operation was canceled before it had a result or an error.
    case cancelled(CancellationCause)
}

extension OperationOutcome: Sendable where ResultType: Sendable {}
extension OperationOutcome: Equatable where ResultType: Equatable, ErrorType: Equatable {}

extension OperationOutcome {
    /// The result, or `nil` if the outcome is not a success.
    public var result: ResultType? {
        if case .success(let result) = self { result } else { nil }
    }

    /// The error of the operation, or `nil` if the outcome is not a failure.
    public var error: ErrorType? {
        if case .failure(let error) = self { error } else { nil }
    }

    /// The cause of the cancellation, or `nil` if the outcome is not a cancellation.
    public var cancellationCause: CancellationCause? {
        if case .cancelled(let cause) = self { cause } else { nil }
    }

    /// Returns the result, or throws the error or the cancellation.
    ///
    /// - Throws: An ``OperationFailure`` with the error of the operation or the cause of its cancellation.
    public func get() throws(OperationFailure<ErrorType>) -> ResultType {
        switch self {
        case .success(let result): return result
        case .failure(let error): throw .failed(error)
        case .cancelled(let cause): throw .cancelled(cause)
        }
    }
}

/// An error that contains the error of an operation or the cause of its cancellation.
///
/// The `value` property and the `run()` and `startAndWait()` methods throw this error. If the `ErrorType` of an
/// operation is `Never`, the only possible case is `cancelled`, and the compiler does not require code for the other
/// case.
///
/// Only a major version may add cases.
public enum OperationFailure<ErrorType: Error>: Error {
    /// The operation failed with an error.
    case failed(ErrorType)
    /// The operation was canceled for the given cause.
    case cancelled(CancellationCause)
}

extension OperationFailure: Equatable where ErrorType: Equatable {}

extension OperationFailure: CustomStringConvertible {
    /// A description of the error or the cause in one line, for a log.
    public var description: String {
        switch self {
        case .failed(let error): "failed: \(error)"
        case .cancelled(let cause): "canceled: \(cause)"
        }
    }
}

extension OperationFailure: LocalizedError {
    /// A sentence that you can show to a user.
    public var errorDescription: String? {
        switch self {
        case .failed(let error): (error as? any LocalizedError)?.errorDescription ?? "\(error)"
        case .cancelled(let cause): cause.message
        }
    }
}

/// A result or an error whose type only its owner knows.
///
/// Small plain values are stored inline, all others on the heap.
///
/// The box keeps the parts of an operation that do not depend on its types free of these types: see ``TypedOperation``.
struct OutcomeBox: @unchecked Sendable {
    // Sendable: the value is Sendable and does not change between `init` and `free`. The owner ensures that no code
    // reads the value after `free`.

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

    /// Returns the value.
    ///
    /// The type must be the type with which the box was created.
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

    /// Whether values of the type fit into one word and can be copied bit by bit.
    private static func isInline<Value>(_ type: Value.Type) -> Bool {
        MemoryLayout<Value>.size <= MemoryLayout<UInt>.size
            && MemoryLayout<Value>.alignment <= MemoryLayout<UInt>.alignment && _isPOD(type)
    }

    private static func pointer<Value>(_ word: UInt, to type: Value.Type) -> UnsafeMutablePointer<Value> {
        // `word` is the address of a value that `init` stored there.
        UnsafeMutablePointer(bitPattern: word).unsafelyUnwrapped
    }
}
