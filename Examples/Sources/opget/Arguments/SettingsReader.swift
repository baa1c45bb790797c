// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A reader that creates settings from the words of a command line, and collects all errors.
struct SettingsReader {
    private let words: CommandLineWords
    private(set) var settings = Settings()
    private(set) var problems: [String]

    init(_ words: CommandLineWords) {
        self.words = words
        problems = words.problems
    }

    mutating func read() {
        settings.urls = words.operands
        for given in words.given { take(given.option, given.value ?? "") }
        let isSingle = settings.urls.count == 1 && settings.lists.isEmpty
        if settings.urls.isEmpty, settings.lists.isEmpty, problems.isEmpty {
            problems.append("There is no URL. Specify one or more URLs, or a list with --input-file.")
        }
        if settings.output != nil, !isSingle {
            problems.append("--output is for a single URL. In a list, write out=NAME after each URL.")
        }
        if settings.checksum != nil, !isSingle {
            problems.append("--checksum is for a single URL. In a list, write sha256=HEX after each URL.")
        }
        let rules = Set(words.given.map(\.option)).intersection([.noClobber, .goOn, .overwrite])
        if rules.contains(.overwrite), rules.count > 1 {
            problems.append("--overwrite contradicts --continue and --no-clobber. Choose one of them.")
        }
    }

    private mutating func take(_ option: Option, _ value: String) {
        switch option {
        case .input: settings.lists.append(value)
        case .jobs: settings.jobs = number(option, value, 1...1_000) ?? 1
        case .segments: settings.segments = number(option, value, 1...64) ?? 1
        case .directory: settings.directory = value
        case .output: takeOutput(value)
        case .remoteName: settings.usesRemoteName = true
        case .noClobber, .goOn: settings.existing = .skip
        case .overwrite: settings.existing = .replace
        case .fresh: settings.beginsAnew = true
        case .checksum: takeChecksum(value)
        case .retries: settings.retries = number(option, value, 0...1_000) ?? 0
        case .limitRate: takeRate(value)
        case .perHost: settings.perHost = number(option, value, 1...256) ?? 1
        case .timeout: settings.timeout = seconds(option, value) ?? settings.timeout
        case .connectTimeout: settings.connectTimeout = seconds(option, value) ?? settings.connectTimeout
        case .header: takeHeader(value)
        case .userAgent: settings.userAgent = value
        case .waitForNetwork: settings.waitsForNetwork = true
        case .sync: settings.isDurable = true
        case .json: settings.json = value.isEmpty || value == "-" ? .standardOutput : .file(value)
        case .quiet: settings.isQuiet = true
        default: break
        }
    }

    private mutating func number(_ option: Option, _ text: String, _ range: ClosedRange<Int>) -> Int? {
        if let number = Int(text), range.contains(number) { return number }
        problems.append(
            "--\(option.name) needs a number from \(range.lowerBound) to \(range.upperBound), not \(quoted(text)).")
        return nil
    }

    private mutating func seconds(_ option: Option, _ text: String) -> Duration? {
        if let number = Double(text), number >= 0.001, number <= 86_400 { return .seconds(number) }
        problems.append("--\(option.name) needs a number of seconds, not \(quoted(text)).")
        return nil
    }

    private mutating func takeOutput(_ text: String) {
        if text == "-" {
            problems.append("--output cannot be standard output, because opget could not verify or resume the file.")
        } else if text.isEmpty || text.hasSuffix("/") {
            problems.append("--output needs the name of a file, not \(quoted(text)).")
        } else {
            settings.output = text
        }
    }

    private mutating func takeChecksum(_ text: String) {
        let halves = text.split(separator: "=", maxSplits: 1).map(String.init)
        if halves.count == 2, let checksum = Self.checksum(halves[0], halves[1]) {
            settings.checksum = checksum
        } else {
            problems.append(
                "--checksum needs KIND=HEX, such as sha256= followed by 64 hexadecimal digits, not \(quoted(text)).")
        }
    }

    private mutating func takeRate(_ text: String) {
        if let rate = Self.rate(text) {
            settings.limitRate = rate
        } else {
            problems.append("--limit-rate needs bytes per second, such as 500k, 2M or 1G, not \(quoted(text)).")
        }
    }

    private mutating func takeHeader(_ text: String) {
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2, !halves[0].isEmpty else {
            return problems.append("--header needs a header in the form 'Name: value'.")
        }
        guard !["range", "if-range", "accept-encoding"].contains(halves[0].lowercased()) else {
            return problems.append("--header cannot set \(halves[0]), because opget sets it to receive the whole file.")
        }
        let value = halves[1].drop { $0 == " " }
        settings.headers.append(Settings.HeaderLine(name: String(halves[0]), value: String(value)))
    }

    private func quoted(_ text: String) -> String { "'\(text)'" }

    /// The supported checksum algorithms.
    private static let algorithms: [ChecksumAlgorithm] = [.sha256, .sha1, .md5, .crc32]

    /// Returns a checksum for the name of an algorithm, or nil if the name or the length of the checksum is invalid.
    static func checksum(_ name: String, _ hexadecimal: String) -> FileChecksum? {
        let name = name.lowercased().filter { $0 != "-" }
        return algorithms.first { $0.description == name }
            .flatMap { FileChecksum(algorithm: $0, hexadecimal: hexadecimal) }
    }

    /// Returns a rate in bytes per second, from a number and the optional unit k (1,000), M (1,000,000) or G
    /// (1,000,000,000).
    static func rate(_ text: String) -> Int? {
        let units: [Character: Double] = ["k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "g": 1e9, "G": 1e9]
        let unit = text.last.flatMap { units[$0] }
        guard let number = Double(unit == nil ? text : String(text.dropLast())) else { return nil }
        let rate = number * (unit ?? 1)
        // With a lower rate, data that a server sends immediately would take about a minute.
        return rate >= 1_000 && rate <= 1e12 ? Int(rate) : nil
    }
}
