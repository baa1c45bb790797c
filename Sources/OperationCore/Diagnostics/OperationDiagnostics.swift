// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Where notices of misuse go: in debug builds to standard error unless you take them, in release builds nowhere.
///
/// A notice never changes what an operation does. Take them in a test to make misuse fail it:
///
/// ```swift
/// OperationDiagnostics.handler = { notice in
///     if !notice.kind.isHarmless { assertionFailure("\(notice)") }
/// }
/// ```
public enum OperationDiagnostics {
    /// Takes the notices, on the thread that caused them.
    ///
    /// Nil prints them in debug builds.
    ///
    /// Without a handler each harmless kind is printed only once in the life of a process.
    public static var handler: (@Sendable (OperationNotice) -> Void)? {
        get { state.withLock { $0.handler } }
        set {
            // The old handler is let go of here, outside the lock.
            var incoming = newValue
            state.withLock { swap(&$0.handler, &incoming) }
        }
    }

    private struct State {
        var handler: (@Sendable (OperationNotice) -> Void)?
        var printed: Set<OperationNotice.Kind> = []
    }

    private static let state = Locked(State())

    package static func report(
        _ kind: OperationNotice.Kind, by operation: Operation, _ message: @autoclosure () -> String
    ) {
        report(kind, by: operation.displayName, message())
    }

    /// Reports a notice of a type that is not an operation.
    package static func report(
        _ kind: OperationNotice.Kind, by reporter: @autoclosure () -> String, _ message: @autoclosure () -> String
    ) {
        if let handler {
            handler(OperationNotice(kind: kind, operation: reporter(), message: message()))
            return
        }
        #if DEBUG
            let isNew = state.withLock { !kind.isHarmless || $0.printed.insert(kind).inserted }
            guard isNew else { return }
            let notice = OperationNotice(kind: kind, operation: reporter(), message: message())
            FileHandle.standardError.write(Data("OperationKit: \(notice)\n".utf8))
        #endif
    }
}

extension Operation {
    /// The operation's name, or else the name of its type, without what it is generic over.
    package var displayName: String {
        if let name, !name.isEmpty { return name }
        return String("\(type(of: self))".prefix { $0 != "<" })
    }
}
