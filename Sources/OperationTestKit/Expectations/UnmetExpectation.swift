// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// What was expected and what was found in its place: an error whose text says both.
///
/// The calls whose names begin with `expect` throw it. A test that throws has failed, in swift-testing and in XCTest
/// alike, and both show the text:
///
/// ```
/// GET https://example.com/songs did not end as expected, SongTests.swift:31
///   expected: failure timedOut
///   found:    failure unacceptableStatus 503, The server answered with status 503.
///   attempts: 503 → 1 s → 503
/// ```
public struct UnmetExpectation: Error, Hashable, Sendable {
    /// What it is about: the name of an operation, as a rule, and what was looked at.
    public let subject: String
    /// What was expected.
    public let expected: String
    /// What was found.
    public let found: String
    /// What else is known, each with a word on what it is: attempts, a state.
    public let details: [String]
    /// File and line of the expectation.
    public let place: String

    /// Makes one, for expectations of your own.
    public init(
        _ subject: String, expected: String, found: String, details: [String] = [], fileID: String = #fileID,
        line: Int = #line
    ) {
        (self.subject, self.expected, self.found, self.details) = (subject, expected, found, details)
        place = "\(fileID.split(separator: "/").last ?? ""):\(line)"
    }
}

extension UnmetExpectation: CustomStringConvertible, LocalizedError {
    /// All of it, in a few lines.
    public var description: String {
        let lines = ["expected: \(expected)", "found:    \(found)"] + details
        return "\(subject), \(place)\n" + lines.map { "  \($0)" }.joined(separator: "\n")
    }

    /// All of it, in a few lines.
    public var errorDescription: String? { description }
}
