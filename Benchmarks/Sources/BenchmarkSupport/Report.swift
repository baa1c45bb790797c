// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The results that a run prints and writes to a file.
package struct Report: Encodable {
    package var workload: String
    package var figures: [Figure]
    package var cores = ProcessInfo.processInfo.activeProcessorCount
    package var system = ProcessInfo.processInfo.operatingSystemVersionString

    package var json: Data {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            return try encoder.encode(self)
        }
    }

    package var table: String {
        let header = ["figure", "ours", "peer", "ratio", "lowest–highest", "target", ""]
        let rows = figures.map { figure in
            [
                figure.name, "\(figure.ours.short) \(figure.unit)",
                figure.peer.map { "\($0.short) \(figure.unit)" } ?? "–",
                figure.peer == nil ? "–" : figure.value.short,
                figure.spread.map { "\($0.lowerBound.short)–\($0.upperBound.short)" } ?? "–",
                figure.target.text, figure.isMet ? "" : "MISSED",
            ]
        }
        let widths = header.indices.map { column in ([header] + rows).map { $0[column].count }.max() ?? 0 }
        return ([header] + rows).map { row in
            zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: "  ")
        }.joined(separator: "\n")
    }
}
