// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// An operation that knows how far it has come, so that the progress of its group moves before its end.
///
/// Network and file operations conform. Your own does with one property and one call:
///
/// ```swift
/// final class Import: AsyncOperation<Int, Never>, MeasuredOperation, @unchecked Sendable {
///     var completedFraction: Double? { 0.5 }
///
///     override func main() {
///         completedFractionDidChange()
///         finish(withResult: 1)
///     }
/// }
/// ```
public protocol MeasuredOperation: ManagedOperation {
    /// The share of its work that is done, from zero to one; nil while nobody knows.
    ///
    /// Read on any thread, outside every lock of the package.
    var completedFraction: Double? { get }
}

extension MeasuredOperation {
    /// Tells the group whose child the operation is that ``completedFraction`` has changed.
    ///
    /// Call it outside your own locks. It does nothing where nobody asked the group for its progress.
    public func completedFractionDidChange() { fractionDidChange { completedFraction } }
}

extension ManagedOperation {
    /// Tells its group how far it has come, if that wants to know.
    package final func fractionDidChange(_ fraction: () -> Double?) {
        let (parent, slot) = core.withLock { ($0.parent, $0.parentSlot) }
        guard let parent, parent.isMeasuring, let fraction = fraction() else { return }
        parent.childDidAdvance(self, slot, to: fraction)
    }
}
