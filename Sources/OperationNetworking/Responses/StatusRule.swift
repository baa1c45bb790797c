// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which statuses of a response are a success.
public struct StatusRule: Sendable {
    let accepts: @Sendable (Int) -> Bool

    /// Makes a rule of any kind.
    public init(_ accepts: @escaping @Sendable (Int) -> Bool) {
        self.accepts = accepts
    }

    /// From 200 to 299: what stands unless changed.
    public static let success = StatusRule { (200...299).contains($0) }

    /// Every status: the evaluator looks at it by itself.
    public static let any = StatusRule { _ in true }

    /// These, and no others.
    public static func only(_ statuses: Int...) -> StatusRule {
        let statuses = Set(statuses)
        return StatusRule { statuses.contains($0) }
    }

    /// A success, or one of these.
    public static func success(or statuses: Int...) -> StatusRule {
        let statuses = Set(statuses)
        return StatusRule { (200...299).contains($0) || statuses.contains($0) }
    }
}
