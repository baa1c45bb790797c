// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Puts a value in the place of another and returns the other, for it to go where no lock is held.
func exchange<Value>(_ place: inout Value, with value: Value) -> Value {
    var value = value
    swap(&place, &value)
    return value
}
