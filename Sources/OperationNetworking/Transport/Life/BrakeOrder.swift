// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which brakes are to be set, as an order that can be overtaken: of two the one with the larger number holds.
package struct BrakeOrder: Equatable, Sendable {
    package let number: Int
    package let isSuspended: Bool
    /// Nil leaves that brake as it is.
    package let isHeld: Bool?

    package init(number: Int, isSuspended: Bool, isHeld: Bool? = nil) {
        self.number = number
        self.isSuspended = isSuspended
        self.isHeld = isHeld
    }
}

/// A task that takes orders about its brakes in the sequence of their numbers.
///
/// Who stands above a task decides under a lock of its own what is wanted, and tells the task after it; so another thread
/// may have told it something newer meanwhile. Plain calls of `resume` and `suspend` would leave the older word as the
/// last one, and the request would go out of a task that its user had suspended.
package protocol OrderedTask: NetworkTask {
    /// Brings the brakes to what is ordered, and starts the task where it is not to be suspended; an order with no larger
    /// number than the last one changes nothing.
    func obey(_ order: BrakeOrder)
}
