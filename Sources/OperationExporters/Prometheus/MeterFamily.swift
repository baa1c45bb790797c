// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

/// A metric with its samples.
struct MeterFamily: Sendable {
    enum Kind: String, Sendable { case counter, gauge, histogram }

    let name: String
    let kind: Kind
    let help: String
    let samples: [NetworkMeter.Sample]
}

extension MeterCounters {
    /// Returns all metrics that have samples.
    func families(prefix: String) -> [MeterFamily] {
        [
            counter(prefix, "operations_started_total", "Operations that started.", [Key(): began]) { _ in [] },
            counter(
                prefix, "operations_ended_total",
                "Operations that ended, by outcome. Operations with the outcome unbegun were canceled before they "
                    + "started, and do not count as started.",
                ended
            ) { [("method", $0.method), ("host", $0.host), ("status", $0.status), ("outcome", $0.word)] },
            counter(
                prefix, "attempts_total",
                "Attempts that ended, by outcome and error code. The code is none for attempts that did not fail.",
                attempts
            ) {
                [
                    ("method", $0.method), ("host", $0.host), ("status", $0.status), ("outcome", $0.word),
                    ("code", $0.code),
                ]
            },
            counter(prefix, "retries_total", "Scheduled retries, by reason.", retries) {
                [("reason", $0.word)]
            },
            counter(prefix, "waits_total", "Waits before a request or after a failed attempt, by reason.", waits) {
                [("reason", $0.word)]
            },
            counter(
                prefix, "refreshes_total",
                "Events of credential refreshes, by outcome. The outcome set means that the program set a credential.",
                refreshes
            ) { [("outcome", $0.word)] },
            counter(
                prefix, "sent_body_bytes_total",
                "Bytes of request bodies sent by transfers that were not canceled.", sentBytes
            ) { [("host", $0.host)] },
            counter(
                prefix, "received_body_bytes_total",
                "Bytes of response bodies received by transfers that were not canceled, before decompression.",
                receivedBytes
            ) { [("host", $0.host)] },
            Self.gauge(prefix, "operations_in_flight", "Operations that started and have not ended.", Double(inFlight)),
            Self.gauge(
                prefix, "attempts_in_flight", "Attempts that started and have not ended.", Double(attemptsInFlight)),
            histogram(
                prefix, "operation_duration_seconds", "Duration of operations, including waits and retries.", durations
            ),
            histogram(
                prefix, "time_to_first_byte_seconds",
                "Time from passing a request to the session until the headers of its response arrived.", firstBytes),
        ].filter { !$0.samples.isEmpty }
    }

    private func counter(
        _ prefix: String, _ name: String, _ help: String, _ lines: [Key: UInt64],
        _ labels: (Key) -> [(String, String)]
    ) -> MeterFamily {
        let name = MeterText.name(prefix, name)
        let samples = lines.map { key, count in
            NetworkMeter.Sample(name: name, labels: Self.labels(labels(key)), value: Double(count))
        }
        return MeterFamily(name: name, kind: .counter, help: help, samples: Self.sorted(samples))
    }

    private static func gauge(_ prefix: String, _ name: String, _ help: String, _ value: Double) -> MeterFamily {
        let name = MeterText.name(prefix, name)
        return MeterFamily(
            name: name, kind: .gauge, help: help, samples: [NetworkMeter.Sample(name: name, labels: [], value: value)])
    }

    private func histogram(
        _ prefix: String, _ name: String, _ help: String, _ lines: [Key: Histogram]
    ) -> MeterFamily {
        let name = MeterText.name(prefix, name)
        let ordered = lines.sorted { Self.order($0.key).lexicographicallyPrecedes(Self.order($1.key)) }
        let samples = ordered.flatMap { key, histogram in
            let labels = Self.labels([("method", key.method), ("host", key.host), ("status", key.status)])
            var sum: UInt64 = 0
            var lines = zip(bounds.map(MeterText.number) + ["+Inf"], histogram.counts).map { bound, count in
                sum += count
                return NetworkMeter.Sample(
                    name: name + "_bucket", labels: labels + Self.labels([("le", bound)]), value: Double(sum))
            }
            lines.append(NetworkMeter.Sample(name: name + "_sum", labels: labels, value: histogram.sum))
            lines.append(NetworkMeter.Sample(name: name + "_count", labels: labels, value: Double(histogram.total)))
            return lines
        }
        return MeterFamily(name: name, kind: .histogram, help: help, samples: samples)
    }

    private static func order(_ key: Key) -> [String] { [key.method, key.host, key.status, key.word, key.code] }

    private static func labels(_ pairs: [(String, String)]) -> [NetworkMeter.Label] {
        pairs.map { NetworkMeter.Label(name: $0.0, value: $0.1) }
    }

    private static func sorted(_ samples: [NetworkMeter.Sample]) -> [NetworkMeter.Sample] {
        samples.sorted { $0.labels.map(\.value).lexicographicallyPrecedes($1.labels.map(\.value)) }
    }

    /// Returns the metrics of queues, including the counts of queues that no longer exist.
    static func families(
        of queues: [(label: String, counts: QueueCounts)], _ gone: [String: QueueCounters.Ends], prefix: String
    ) -> [MeterFamily] {
        guard !queues.isEmpty || !gone.isEmpty else { return [] }
        let byName = Dictionary(grouping: queues, by: \.label).mapValues { $0.map(\.counts) }
        let present = byName.mapValues { $0.map(QueueCounters.Ends.init).reduce(QueueCounters.Ends(), +) }
        let ends = gone.merging(present, uniquingKeysWith: +)
        func samples<Value>(
            _ name: String, _ label: String, _ lines: [String: Value], _ parts: [(String, (Value) -> Int)]
        ) -> [NetworkMeter.Sample] {
            lines.sorted { $0.key < $1.key }.flatMap { queue, value in
                parts.map { part, number in
                    NetworkMeter.Sample(
                        name: name, labels: labels([("queue", queue), (label, part)]), value: Double(number(value)))
                }
            }
        }
        func sum(_ part: @escaping (QueueCounts) -> Int) -> ([QueueCounts]) -> Int { { $0.map(part).reduce(0, +) } }
        let depth = MeterText.name(prefix, "queue_operations"), ended = MeterText.name(prefix, "queue_ended_total")
        return [
            MeterFamily(
                name: depth, kind: .gauge,
                help: "Operations in a queue, by state. The state resting means that a running operation waits without "
                    + "a slot.",
                samples: samples(
                    depth, "state", byName,
                    [
                        ("waiting", sum(\.waiting)), ("held", sum(\.held)), ("ready", sum(\.ready)),
                        ("running", sum { $0.running - $0.resting }), ("resting", sum(\.resting)),
                        ("ending", sum(\.ending)),
                    ])),
            MeterFamily(
                name: ended, kind: .counter, help: "Operations that ended in the queues with this name, by outcome.",
                samples: samples(
                    ended, "outcome", ends,
                    [("success", \.finished), ("failure", \.failed), ("cancelled", \.cancelled)])),
        ].filter { !$0.samples.isEmpty }
    }
}

/// The text format of Prometheus, version 0.0.4.
enum MeterText {
    static func text(of families: [MeterFamily]) -> String {
        var text = ""
        for family in families {
            text += "# HELP \(family.name) \(escaped(family.help, quotes: false))\n"
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            for sample in family.samples { text += line(sample) }
        }
        return text
    }

    private static func line(_ sample: NetworkMeter.Sample) -> String {
        let labels = sample.labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }
        let list = labels.isEmpty ? "" : "{" + labels.joined(separator: ",") + "}"
        return "\(sample.name)\(list) \(number(sample.value))\n"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        // The text is processed by scalars, because a carriage return and a line feed form one character.
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Returns the shortest text for a number, such as 1, 0.005 or 1e-07.
    static func number(_ value: Double) -> String {
        guard value.isFinite else { return value.isNaN ? "NaN" : value < 0 ? "-Inf" : "+Inf" }
        let text = "\(value)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// Returns a name of letters, digits and underscores that does not begin with a digit.
    static func name(_ prefix: String, _ name: String) -> String {
        let letters = prefix.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "_": String(scalar)
            default: "_"
            }
        }
        let clean = letters.joined()
        if clean.isEmpty { return name }
        return (clean.first?.isNumber == true ? "_" : "") + clean + "_" + name
    }
}
