// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A line of the table, with the measured value, the value of the peer and the target.
package struct Figure: Encodable, Sendable {
    package enum Target: Sendable {
        case atMost(Double)
        case atLeast(Double)
        case none

        package var text: String {
            switch self {
            case .atMost(let bound): "≤ \(bound.short)"
            case .atLeast(let bound): "≥ \(bound.short)"
            case .none: "–"
            }
        }
    }

    package var name: String
    package var unit: String
    package var ours: Double
    package var peer: Double?
    package var target: Target = .none
    /// The ratio to the peer, or the measured value if there is no peer.
    package var value: Double
    /// The lowest and the highest ratio of a round, or nil if they are unknown.
    package var spread: ClosedRange<Double>?

    /// Returns a figure whose target is a ratio to a peer in the same run.
    package static func ratio(_ name: String, unit: String, _ pair: Pair, target: Target) -> Figure {
        Figure(
            name: name, unit: unit, ours: pair.ours, peer: pair.peer, target: target, value: pair.ratio,
            spread: pair.spread)
    }

    /// Returns a figure whose target is a speedup compared with the peer.
    package static func speedup(_ name: String, unit: String, _ pair: Pair, target: Target = .none) -> Figure {
        Figure(
            name: name, unit: unit, ours: pair.ours, peer: pair.peer, target: target, value: 1 / pair.ratio,
            spread: pair.spread.map { 1 / $0.upperBound...1 / $0.lowerBound })
    }

    /// Returns a figure whose target is a value, without a peer.
    package static func plain(_ name: String, unit: String, _ value: Double, target: Target = .none) -> Figure {
        Figure(name: name, unit: unit, ours: value, peer: nil, target: target, value: value)
    }

    package var isMet: Bool {
        switch target {
        case .atMost(let bound): value <= bound
        case .atLeast(let bound): value >= bound
        case .none: true
        }
    }

    package var judged: String { value.short }

    private enum Key: String, CodingKey { case name, unit, ours, peer, ratio, lowest, highest, target, isMet }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(name, forKey: .name)
        try container.encode(unit, forKey: .unit)
        try container.encode(ours, forKey: .ours)
        try container.encodeIfPresent(peer, forKey: .peer)
        if peer != nil { try container.encode(value, forKey: .ratio) }
        try container.encodeIfPresent(spread?.lowerBound, forKey: .lowest)
        try container.encodeIfPresent(spread?.upperBound, forKey: .highest)
        try container.encode(target.text, forKey: .target)
        try container.encode(isMet, forKey: .isMet)
    }
}

extension Double {
    /// The value with about three digits.
    package var short: String {
        let digits = abs(self) >= 100 ? 0 : abs(self) >= 10 ? 1 : 2
        let factor = [1.0, 10, 100][digits]
        let rounded = (self * factor).rounded() / factor
        return digits == 0 || rounded == rounded.rounded() && digits == 0 ? "\(Int(rounded))" : "\(rounded)"
    }
}
