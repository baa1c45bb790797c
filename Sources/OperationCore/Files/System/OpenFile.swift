// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A file or directory that is open, and is closed at the latest when this object goes.
///
/// Not Sendable on purpose: it stays on the thread of the operation that opened it.
package final class OpenFile {
    private var number: Int32?

    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        if let number { _ = PosixCalls.close(number) }
    }

    func withNumber<Result>(_ body: (Int32) -> Result) -> Result {
        // A closed file has no number; the system refuses this one.
        withExtendedLifetime(self) { body(number ?? -1) }
    }

    /// The number, to be closed by the caller; nil if that was done.
    func takeNumber() -> Int32? {
        exchange(&number, with: nil)
    }
}
