// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct HeaderFieldsTests {
    @Test func `headers keep their order and their duplicates`() {
        var fields: HeaderFields = ["Set-Cookie": "a=1, b", "X": "y", "set-cookie": "c=2"]
        #expect(fields.map(\.name) == ["Set-Cookie", "X", "set-cookie"])
        #expect(fields.values("SET-COOKIE") == ["a=1, b", "c=2"])
        #expect(fields["set-Cookie"] == "a=1, b")
        fields.add("x", "z")
        #expect(fields.values("X") == ["y", "z"])
    }

    @Test func `setting a header replaces all headers of its name at the position of the first one`() {
        var fields: HeaderFields = ["A": "1", "B": "2", "a": "3"]
        fields["a"] = "4"
        #expect(Array(fields) == [.init("a", "4"), .init("B", "2")])
        fields["C"] = "5"
        fields["b"] = nil
        #expect(Array(fields) == [.init("A", "4"), .init("C", "5")])
    }

    @Test func `headers are compared without regard to the case of their names`() {
        let left: HeaderFields = ["Content-Type": "a"]
        #expect(left == ["content-type": "a"])
        #expect(left.hashValue == (["CONTENT-TYPE": "a"] as HeaderFields).hashValue)
        #expect(left != ["Content-Type": "A"])
        #expect(left != ["Content_Type": "a"])
    }
}
