// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A picture of the run, with one lane for each slot of the queue and one bar for each operation.
struct RunPicture {
    private struct Bar {
        let name: String
        let lane: Int
        let start: Double
        let end: Double
        let ending: String
    }

    private static let (width, left, laneHeight, top) = (1_080.0, 70.0, 26.0, 46.0)
    private static let colors = ["success": "#3a8f5c", "failure": "#c0453b", "cancelled": "#c98a2b"]

    private let bars: [Bar]
    private let title: String

    init(of record: QueueRecord, title: String) {
        self.title = title
        let runs = record.runs.filter { $0.started != nil && $0.ended != nil && $0.lane != nil }
        let first = runs.compactMap(\.started).min()
        bars = runs.compactMap { run in
            guard let first, let started = run.started, let ended = run.ended, let lane = run.lane else { return nil }
            return Bar(
                name: run.name, lane: lane, start: Self.seconds(first.duration(to: started)),
                end: Self.seconds(first.duration(to: ended)), ending: run.ending.map { "\($0)" } ?? "")
        }
    }

    /// The picture as SVG, which a browser can open.
    var svg: String {
        let length = max(bars.map(\.end).max() ?? 0, 0.1)
        let lanes = (bars.map(\.lane).max() ?? 0) + 1
        let bottom = Self.top + Double(lanes) * Self.laneHeight
        let scale = (Self.width - Self.left - 20) / length
        var parts = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(Int(Self.width)) \(Int(bottom) + 56)\" "
                + "font-family=\"system-ui, sans-serif\" font-size=\"12\">",
            "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>",
            text(Self.left, 26, title, size: 16),
        ]
        for lane in 0..<lanes {
            parts.append(text(12, Self.top + (Double(lane) + 0.65) * Self.laneHeight, "slot \(lane + 1)", "#666666"))
        }
        let step = [0.1, 0.25, 0.5, 1, 2, 5, 10].first { length / $0 <= 12 } ?? 30
        for number in 0...Int(length / step) {
            let place = Self.left + Double(number) * step * scale
            parts.append(
                "<line x1=\"\(short(place))\" x2=\"\(short(place))\" y1=\"\(short(Self.top))\" y2=\"\(short(bottom))\" "
                    + "stroke=\"#dddddd\"/>")
            parts.append(text(place - 8, bottom + 18, "\(short(Double(number) * step)) s", "#666666"))
        }
        parts += bars.map { bar($0, scale) }
        parts.append(legend(bottom + 44))
        return (parts + ["</svg>"]).joined(separator: "\n") + "\n"
    }

    private func bar(_ bar: Bar, _ scale: Double) -> String {
        let (x, y) = (Self.left + bar.start * scale, Self.top + Double(bar.lane) * Self.laneHeight + 3)
        let width = max((bar.end - bar.start) * scale, 2)
        let fits = width > Double(bar.name.count) * 7 + 8
        let name = fits ? text(x + 5, y + 14, bar.name, "#ffffff") : ""
        return "<g><title>\(escaped(bar.name)), \(Int((bar.end - bar.start) * 1_000)) ms, \(word(bar.ending))</title>"
            + "<rect x=\"\(short(x))\" y=\"\(short(y))\" width=\"\(short(width))\" "
            + "height=\"\(short(Self.laneHeight - 6))\" rx=\"3\" "
            + "fill=\"\(Self.colors[bar.ending] ?? "#888888")\"/>\(name)</g>"
    }

    private func legend(_ y: Double) -> String {
        var x = Self.left
        return Self.colors.sorted { $0.key < $1.key }.map { ending, color in
            defer { x += 110 }
            return "<rect x=\"\(short(x))\" y=\"\(short(y - 10))\" width=\"12\" height=\"12\" rx=\"2\" "
                + "fill=\"\(color)\"/>"
                + text(x + 18, y, word(ending), "#666666")
        }.joined(separator: "\n")
    }

    /// Returns the text for an ending in the picture.
    private func word(_ ending: String) -> String { ending == "cancelled" ? "canceled" : ending }

    private func text(_ x: Double, _ y: Double, _ text: String, _ color: String = "#222222", size: Int = 12) -> String {
        "<text x=\"\(short(x))\" y=\"\(short(y))\" fill=\"\(color)\" font-size=\"\(size)\">\(escaped(text))</text>"
    }

    private func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }

    private func short(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        let (whole, rest) = (hundredths / 100, abs(hundredths % 100))
        if rest % 10 == 0 { return rest == 0 ? "\(whole)" : "\(whole).\(rest / 10)" }
        return "\(whole).\(rest < 10 ? "0" : "")\(rest)"
    }

    private static func seconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = duration.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
