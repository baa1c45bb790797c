// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension Connectivity {
    /// What kind of interface leads out of this machine.
    ///
    /// New kinds may be added.
    public struct Interface: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind, fit for a metric's label.
        public let description: String

        /// Makes a kind of your own.
        public init(_ name: String) {
            description = name
        }

        /// A cable.
        public static let wired = Interface("wired")
        /// A wireless network nearby.
        public static let wifi = Interface("wifi")
        /// A phone's network.
        public static let cellular = Interface("cellular")
        /// A tunnel, such as that of a VPN.
        public static let tunnel = Interface("tunnel")
        /// Any other, or one of which the kind is not known.
        public static let other = Interface("other")
    }
}
