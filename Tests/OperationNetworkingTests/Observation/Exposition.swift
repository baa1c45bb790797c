// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Testing

/// Reads the text format of Prometheus (0.0.4), and rejects everything else.
struct Exposition {
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    struct Line: Hashable {
        let name: String
        let labels: [String: String]
        let value: Double
    }

    private(set) var lines: [Line] = []
    private(set) var types: [String: String] = [:]
    private(set) var helps: [String: String] = [:]

    init(_ text: String) throws {
        guard text.isEmpty || text.hasSuffix("\n") else { throw Problem(description: "no line feed at the end") }
        var present = ""
        var done: Set<String> = []
        var seen: Set<[String]> = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: true) {
            let words = line.split(separator: " ", maxSplits: 3).map(String.init)
            if line.hasPrefix("# HELP ") {
                guard words.count == 4, helps[words[2]] == nil else { throw Problem(description: "HELP: \(line)") }
                helps[words[2]] = words[3]
                guard !done.contains(words[2]) else { throw Problem(description: "in two places: \(words[2])") }
                done.insert(present)
                present = words[2]
            } else if line.hasPrefix("# TYPE ") {
                guard words.count == 4, words[2] == present, types[present] == nil,
                    ["counter", "gauge", "histogram"].contains(words[3])
                else { throw Problem(description: "TYPE: \(line)") }
                types[present] = words[3]
            } else {
                let read = try Self.line(String(line))
                let suffixes = types[present] == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
                guard suffixes.contains(where: { present + $0 == read.name }) else {
                    throw Problem(description: "beside its metric: \(line)")
                }
                let key = [read.name] + read.labels.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
                guard seen.insert(key).inserted else { throw Problem(description: "twice: \(line)") }
                lines.append(read)
            }
        }
        try checkHistograms()
    }

    private static func line(_ text: String) throws -> Line {
        func problem(_ words: String) -> Problem { Problem(description: "\(words): \(text)") }
        var rest = Substring(text)
        let name = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == ":") }
        guard let first = name.first, !first.isNumber else { throw problem("name") }
        rest = rest.dropFirst(name.count)
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest = rest.dropFirst()
            while rest.first != "}" {
                let label = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
                rest = rest.dropFirst(label.count)
                guard !label.isEmpty, rest.hasPrefix("=\"") else { throw problem("label") }
                rest = rest.dropFirst(2)
                var value = ""
                while let letter = rest.popFirst(), letter != "\"" {
                    guard letter == "\\" else {
                        value.append(letter)
                        continue
                    }
                    switch rest.popFirst() {
                    case "\\": value.append("\\")
                    case "\"": value.append("\"")
                    case "n": value.append("\n")
                    default: throw problem("escape")
                    }
                }
                guard labels.updateValue(value, forKey: String(label)) == nil else { throw problem("label twice") }
                if rest.first == "," { rest = rest.dropFirst() }
            }
            rest = rest.dropFirst()
        }
        guard rest.first == " ", let value = Double(rest.dropFirst()), value.isFinite else { throw problem("value") }
        return Line(name: String(name), labels: labels, value: value)
    }

    /// Checks that the bounds of each histogram grow, and that its last bucket has no bound and equals the count.
    private func checkHistograms() throws {
        for name in types.filter({ $0.value == "histogram" }).keys {
            var groups: [[String: String]: [(bound: Double, value: Double)]] = [:]
            for line in lines where line.name == name + "_bucket" {
                var labels = line.labels
                guard let text = labels.removeValue(forKey: "le"), let bound = Double(text == "+Inf" ? "inf" : text)
                else {
                    throw Problem(description: "le: \(line)")
                }
                groups[labels, default: []].append((bound, line.value))
            }
            for (labels, buckets) in groups {
                let count = lines.first { $0.name == name + "_count" && $0.labels == labels }?.value
                let sum = lines.first { $0.name == name + "_sum" && $0.labels == labels }?.value
                guard buckets.last?.bound == .infinity, buckets.last?.value == count, sum != nil,
                    zip(buckets, buckets.dropFirst()).allSatisfy({ $0.bound < $1.bound && $0.value <= $1.value })
                else { throw Problem(description: "buckets of \(name) \(labels)") }
            }
        }
    }

    /// The sum of the lines of a metric with these labels.
    func sum(_ name: String, _ labels: [String: String] = [:]) -> Double {
        lines.filter { line in line.name == name && labels.allSatisfy { line.labels[$0.key] == $0.value } }
            .reduce(0) { $0 + $1.value }
    }
}
