// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import XCTest

@testable import quickstart

/// The test kit in XCTest.
///
/// A failed expectation throws an error that contains the reason.
final class AlbumServiceXCTests: XCTestCase {
    func testPasswordIsWrong() async throws {
        let session = StubSession()
        session.route("POST", "/session") { _ in .json(#"{"error":"wrong password"}"#, status: 403) }
        var base = NetworkBase(try XCTUnwrap(URL(string: "https://albums.example")))
        base.session = session
        let signIn: EndpointOperation<Tokens> = base.send(["name": "ada", "password": "?"], to: "session")
        signIn.start()
        let error = try await signIn.expectFailure(.unacceptableStatus, status: 403)
        XCTAssertNil(error.retryEnd)
        XCTAssertEqual(signIn.story, "403")
        do {
            try await signIn.expectSuccess()
            XCTFail("It is no success.")
        } catch {
            XCTAssertTrue("\(error)".contains("expected: a success"), "\(error)")
        }
    }

    func testWithoutAwaiting() throws {
        let sum = ClosureOperation { 1 + 1 }
        sum.start()
        XCTAssertEqual(sum.outcome?.result, 2)
    }
}
