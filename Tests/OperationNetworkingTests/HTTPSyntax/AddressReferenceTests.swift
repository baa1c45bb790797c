// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct AddressReferenceTests {
    /// All examples of RFC 3986, section 5.4.
    static let examples = [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
        ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"),
        ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/./x", "http://a/b/c/g#s/./x"),
        ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
    ]

    @Test(arguments: examples)
    func `each example of RFC 3986 resolves as the RFC specifies`(reference: String, target: String) {
        let base = AddressReference("http://a/b/c/d;p?q")
        #expect(AddressReference(reference).resolved(against: base).text == target)
    }

    @Test func `parsing and reassembling any reference returns the same text`() {
        let alphabet = "ab:/?#[]@.%é \\".map { String($0) }
        for text in SeededGenerator.texts(20_000, of: alphabet, most: 12, seed: 3986) {
            let reference = AddressReference(text)
            #expect(reference.text == text)
            let resolved = reference.resolved(against: AddressReference("http://h/x/y?z"))
            // The path after an authority contains no dot segments.
            guard resolved.scheme == "http", resolved.authority == "h" else { continue }
            let segments = resolved.path.split(separator: "/", omittingEmptySubsequences: false)
            #expect(!segments.contains(".") && !segments.contains(".."), "\(text)")
        }
    }
}

extension AddressReference {
    /// The text of the reference (RFC 3986, section 5.3).
    fileprivate var text: String {
        var text = ""
        if let scheme { text += scheme + ":" }
        if let authority { text += "//" + authority }
        text += path
        if let query { text += "?" + query }
        if let fragment { text += "#" + fragment }
        return text
    }
}
