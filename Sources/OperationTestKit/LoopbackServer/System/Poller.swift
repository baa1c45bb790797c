// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Waits until descriptors can be read or written; used by one thread.
protocol Poller: AnyObject {
    /// Watches a descriptor, or watches it for something else than before.
    func watch(_ file: Int32, for interest: PollInterest)

    /// Forgets a descriptor, before it is closed.
    func forget(_ file: Int32)

    /// Waits until something can be done, and calls `body` for each descriptor.
    func wait(_ body: (Int32, PollResult) -> Void)

    /// Gives back what the system lent.
    func close()
}

/// What a descriptor is watched for; that it broke is always told.
struct PollInterest: OptionSet {
    let rawValue: UInt8

    static let reading = Self(rawValue: 1)
    static let writing = Self(rawValue: 2)
}

/// What can be done with a descriptor.
struct PollResult: OptionSet {
    let rawValue: UInt8

    static let readable = Self(rawValue: 1)
    static let writable = Self(rawValue: 2)
    static let broken = Self(rawValue: 4)
}
