// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Testing

@testable import TerminalDisplay

@Suite("Width and fitting of text")
struct DisplayTextTests {
    @Test(arguments: [
        ("", 0), ("plain", 5), ("é", 1), ("e\u{301}", 1), ("日本", 4), ("한글", 4), ("\u{1112}\u{1161}\u{11AB}", 2),
        ("👍", 2), ("❤️", 2), ("🇩🇪", 4), ("👩‍👩‍👧", 6), ("a\u{200B}b", 2), ("ｆ", 2), ("─", 1), ("\u{AD}", 0),
    ])
    func `column counts match those of most terminals`(text: String, columns: Int) {
        #expect(DisplayText.columns(of: text) == columns)
    }

    @Test func `control characters are removed`() {
        #expect(DisplayText.cleaned("a\u{1B}[31mb") == "a?[31mb")
        #expect(DisplayText.cleaned("a\nb\u{202E}c\u{85}d\u{2028}") == "a?b?c?d?")
        #expect(DisplayText.cleaned("👩‍👩‍👧 日本.txt") == "👩‍👩‍👧 日本.txt")
    }

    @Test(arguments: [
        ("abcdefghij", 10, "abcdefghij"), ("abcdefghij", 9, "abcd…ghij"), ("abcdefghij", 4, "ab…j"),
        ("abcdefghij", 1, "a"), ("abcdefghij", 0, ""), ("日本語の名前", 7, "日本…前"), ("日本語", 2, "…"), ("日本", 1, ""),
    ])
    func `names are shortened in the middle`(text: String, limit: Int, short: String) {
        #expect(DisplayText.shortened(text, to: limit) == short)
        #expect(DisplayText.columns(of: short) <= limit)
    }

    @Test func `no shortened text exceeds its limit`() {
        let texts = ["plain text", "日本語", "👩‍👩‍👧👍", "e\u{301}e\u{301}e\u{301}", "a日b本c", ""]
        for text in texts {
            for limit in 0..<20 {
                #expect(DisplayText.columns(of: DisplayText.shortened(text, to: limit)) <= limit)
                #expect(DisplayText.columns(of: DisplayText.shortened(text, to: limit, ellipsis: "...")) <= limit)
            }
        }
    }

    @Test func `long lines are wrapped at spaces`() {
        #expect(DisplayText.wrapped("one two three", to: 8) == ["one two", "three"])
        #expect(DisplayText.wrapped("one two three", to: 8, indent: 2) == ["one two", "  three"])
        #expect(DisplayText.wrapped("abcdefghij k", to: 4) == ["abcd", "efgh", "ij k"])
        #expect(DisplayText.wrapped("a\n\nb", to: 4) == ["a", "", "b"])
        #expect(DisplayText.wrapped("", to: 4) == [""])
        for line in DisplayText.wrapped("日本語の長い名前 and more of it", to: 5) {
            #expect(DisplayText.columns(of: line) <= 5)
        }
    }
}
