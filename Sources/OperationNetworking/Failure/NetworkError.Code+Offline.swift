// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What ends the wait for a network, or takes its place.
extension NetworkError.Code {
    /// The network is gone, and the operation was not to wait for it.
    public static let offline = Self("offline")
    /// The network did not return within the time that the operation might wait.
    public static let offlineTooLong = Self("offlineTooLong")
    /// The network came and went more often than the operation might wait.
    public static let offlineTooOften = Self("offlineTooOften")
    /// As many operations wait for the network as may.
    public static let tooManyOffline = Self("tooManyOffline")
}
