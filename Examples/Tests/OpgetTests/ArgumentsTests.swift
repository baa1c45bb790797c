// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import Testing

@testable import opget

@Suite("Command-line arguments")
struct ArgumentsTests {
    private func settings(_ words: String...) -> Settings? {
        if case .download(let settings) = Command(words) { settings } else { nil }
    }

    private func problems(_ words: String...) -> [String] {
        if case .refuse(let problems) = Command(words) { problems } else { [] }
    }

    @Test func `a value may follow its option directly, after a space, or after an equals sign`() {
        for words in [["-j3", "u"], ["-j", "3", "u"], ["--jobs=3", "u"], ["--jobs", "3", "u"], ["-qj3", "u"]] {
            guard case .download(let settings) = Command(words) else {
                Issue.record("\(words)")
                continue
            }
            #expect(settings.jobs == 3 && settings.urls == ["u"])
        }
        #expect(settings("--", "--jobs", "-q")?.urls == ["--jobs", "-q"])
        #expect(settings("-i", "-")?.lists == ["-"])
        #expect(settings("--json", "u")?.json == .standardOutput)
        #expect(settings("--json=log", "u")?.json == .file("log"))
        #expect(settings("-H", "A: b:c", "u")?.headers == [Settings.HeaderLine(name: "A", value: "b:c")])
    }

    @Test func `all errors are reported together`() {
        #expect(
            problems("--jbos=3", "-j", "0", "--timeout=x", "--limit-rate=1z", "--checksum=sha256=12", "u").count == 5)
        #expect(problems("--jbos=3") == ["There is no option --jbos. Did you mean --jobs?"])
        #expect(problems("--segmnts", "u") == ["There is no option --segmnts. Did you mean --segments?"])
        #expect(problems("--zzz", "u") == ["There is no option --zzz."])
        #expect(problems("--quiet=1", "u") == ["--quiet takes no value."])
        #expect(problems("--jobs") == ["--jobs needs a value: --jobs=N."])
        #expect(problems("-x", "u") == ["There is no option -x. See opget --help."])
        #expect(problems() == ["There is no URL. Specify one or more URLs, or a list with --input-file."])
        #expect(problems("-o", "f", "u", "v").count == 1)
        #expect(problems("-cf", "u").count == 1)
    }

    @Test(arguments: [
        ("500k", 500_000), ("2M", 2_000_000), ("1.5m", 1_500_000), ("1000", 1_000), ("1G", 1_000_000_000),
    ])
    func `a rate may have a unit`(text: String, rate: Int) {
        #expect(SettingsReader.rate(text) == rate)
    }

    @Test(arguments: ["", "k", "0", "-1", "1", "nan", "inf", "1e30", "2 M", "M2"])
    func `an invalid rate is rejected`(text: String) {
        #expect(SettingsReader.rate(text) == nil)
    }

    private func items(_ list: String) -> ItemReader {
        var reader = ItemReader { url throws(NetworkError) in try NetworkRequest(url: url) }
        reader.read(list: list, named: "list")
        return reader
    }

    @Test func `a list is read line by line`() {
        let sum = String(repeating: "0", count: 64)
        let reader = items("# c\n\nhttp://h/a sha256=\(sum) out=b/c\r\n http://h/b\n")
        #expect(reader.problems.isEmpty)
        #expect(reader.items.map(\.name) == ["b/c", nil])
        #expect(reader.items[0].checksum?.hexadecimal == sum)
    }

    @Test func `a list may have a byte order mark, any line endings, and repeated URLs`() {
        let reader = items("\u{FEFF}http://h/a\r\nhttp://h/b out=c\r\nhttp://h/a\r\nhttp://h/b\r\n")
        #expect(reader.problems.isEmpty)
        #expect(reader.items.map(\.url.lastPathComponent) == ["a", "b", "b"])
        #expect(reader.items.map(\.index) == [0, 1, 2])
        #expect(reader.repeatedCount == 1)
    }

    @Test func `a checksum applies to all lines of its URL, and two different checksums are an error`() {
        let sum = String(repeating: "0", count: 64)
        for list in ["http://h/a\nhttp://h/a sha256=\(sum)\n", "http://h/a sha256=\(sum)\nhttp://h/a\n"] {
            let reader = items(list)
            #expect(reader.problems.isEmpty && reader.repeatedCount == 1)
            #expect(reader.items.map(\.checksum?.hexadecimal) == [sum])
        }
        let other = String(repeating: "1", count: 64)
        let reader = items("http://h/a sha256=\(sum)\nhttp://h/a sha256=\(other)\n")
        #expect(reader.problems.count == 1 && reader.problems.first?.hasPrefix("list, line 2: ") == true)
    }

    @Test func `rejected URLs are shown without their secrets`() {
        #expect(DownloadItem.shown("ftp://user:pass@host/f?a=b#c") == "ftp://***@host/f")
        #expect(DownloadItem.shown("user:pass@host") == "***@host")
        #expect(DownloadItem.shown("plain") == "plain")
        #expect(problems("-H", "Range: bytes=0-9", "u").count == 1)
        #expect(problems("-o", "-", "u").count == 1)
    }

    @Test(arguments: [
        "http://h/a out=~/b", "http://h/a out=b/~", "http://h/a out=b\u{7}", "http://h/a out=b\u{0}",
        "http://h/a out=../b", "http://h/a out=/b", "http://h/a out=a/../b", "http://h/a sha256=12", "http://h/a x=y",
        "http://h/a out=b out=c", "http://h/a crc32=cbf43926 crc32=00000000", "mailto:x", "# nothing", "",
    ])
    func `an invalid line is reported with its number`(line: String) {
        let reader = items(line)
        #expect(reader.problems.count == 1)
        #expect(line.isEmpty || line.hasPrefix("#") || reader.problems[0].hasPrefix("list, line 1: "))
    }
}
