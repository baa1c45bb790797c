// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkError {
    /// What the layer beneath said.
    public struct Underlying: Hashable, Sendable, CustomStringConvertible {
        /// Who said it: `libcurl`, `NSURLErrorDomain`, `errno`.
        public let domain: String
        /// Its number.
        public let number: Int
        /// Its words, without control characters and line breaks.
        public let text: String

        /// Makes one.
        public init(domain: String, number: Int, text: String) {
            self.domain = domain
            self.number = number
            self.text = text.printable()
        }

        /// All three.
        public var description: String { "\(domain) \(number): \(text)" }
    }
}
