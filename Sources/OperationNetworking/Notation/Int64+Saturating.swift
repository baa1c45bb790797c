// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension Int64 {
    /// Returns the sum, or the largest or smallest number if the sum overflows.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other < 0 ? .min : .max) : sum
    }
}

extension Sequence<Int64> {
    /// The sum of numbers that may be too large, such as the announced sizes of files.
    package var saturatedSum: Int64 { reduce(0) { $0.addingSaturated($1) } }
}
