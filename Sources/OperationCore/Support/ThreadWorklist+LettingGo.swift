// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension ThreadWorklist {
    /// Lets go of a value that may hold an operation which holds another, and so on: freed in a loop.
    ///
    /// For a `deinit`, on whose stack the value would go otherwise. It must be the last that holds the value, so take it
    /// out of its place: `letGo(exchange(&place, with: nil))`.
    package static func letGo<Value>(_ value: consuming Value) {
        var value: Value? = value
        perform { withExtendedLifetime(exchange(&value, with: nil)) {} }
    }
}
