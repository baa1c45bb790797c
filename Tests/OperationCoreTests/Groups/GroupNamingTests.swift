// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

/// The names of children in the errors of groups, and how operations describe their end.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct GroupNamingTests {
    private func failing() -> ClosureOperation<Int, any Error> { ClosureOperation { throw Flaw.first } }

    @Test func `the failure of a mapped child names its original`() async {
        let group = GroupOperation.all([failing().mapResult { "\($0)" }])
        await group.startAndEnd()
        #expect(group.outcome?.error?.child?.name == "ClosureOperation")
    }

    @Test func `the failure of a map names the index and the element, truncated to 80 characters`() async {
        let elements = ["a", "b", String(repeating: "word ", count: 40)]
        let group = GroupOperation.map(elements, width: 1) { element in
            ClosureOperation { () throws -> Int in
                if element.count > 1 { throw Flaw.first }
                return 1
            }
        }
        await group.startAndEnd()
        let text = "ClosureOperation, element 2 (\(String(repeating: "word ", count: 16)))"
        #expect(group.outcome?.error?.child?.name == text)
    }

    private struct User { var password = "hunter2" }
    private enum Size { case large }

    private static let namedElements: [(element: any Sendable, name: String)] = [
        (17, " (17)"), (1.5, " (1.5)"), (true, " (true)"), ("files/a b.txt", " (files/a b.txt)"),
        (Size.large, " (large)"),
        (User(), " (User)"), (["token": "hunter2"], " (Dictionary<String, String>)"),
        (URL(string: "https://ada:hunter2@host/f?token=hunter2#x"), " (https://host/f)"),
        ("https://host/f?token=hunter2", " (https://host/f)"), ("token=hunter2", ""), ("Bearer abc", ""),
        ("token: hunter2", ""), ("ada:hunter2", ""), ("a token%3Dhunter2", ""),
        (URL(string: "data:text/plain,hunter2"), ""),
        ("sk" + String(repeating: "a1", count: 20), ""), ("ada@example.com", ""),
        (URL(string: "https://host/" + String(repeating: "a1", count: 20)), " (…://host/…)"),
    ]

    @Test(arguments: namedElements.indices)
    func `a failure names an element only if it cannot reveal a secret`(index: Int) async {
        let (element, name) = Self.namedElements[index]
        let group = GroupOperation.map([element], width: 1) { _ in failing() }
        await group.startAndEnd()
        #expect(group.outcome?.error?.child?.name == "ClosureOperation, element 0\(name)")
    }

    @Test func `an operation describes how it ended, and toggle() switches its state`() async {
        let succeeded = HandDriven(), failed = HandDriven(), cancelled = HandDriven()
        for operation in [succeeded, failed, cancelled] {
            #expect(operation.toggle() == .executing)
            #expect(operation.toggle() == .suspended)
            #expect(operation.toggle() == .executing)
        }
        succeeded.finish(withResult: 1)
        failed.finish(withError: .first)
        cancelled.cancel()
        #expect([succeeded, failed, cancelled].map(\.isSuccessful) == [true, false, false])
        #expect([succeeded, failed, cancelled].map(\.isFailed) == [false, true, false])
        #expect([succeeded, failed, cancelled].map(\.stateDescription) == ["succeeded", "failed", "cancelled"])
        let group = GroupOperation.all([HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))])
        #expect(group.toggle() == .executing || group.isSuccessful)
        await group.ended()
        #expect(group.toggle() == .finished)
    }
}
