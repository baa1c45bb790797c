// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// What is compared of a request, part by part.
struct PlaybackKey: Hashable, Sendable {
    enum Part: String, CaseIterable {
        case method, host, path, query, body
        case headers = "header fields"
    }

    /// In the place of a body that is not known whole: it fits all.
    static let anyBody = "any"

    private let parts: [String]

    init(method: String, url: String, body: String, headers: HeaderFields, _ rules: PlaybackRules) {
        let mark = url.firstIndex(of: "?") ?? url.endIndex
        let address = url[..<mark]
        let start = address.range(of: "://")?.upperBound ?? address.startIndex
        let slash = address[start...].firstIndex(of: "/") ?? address.endIndex
        let pairs = url[mark...].dropFirst().split(separator: "&", omittingEmptySubsequences: false).filter { pair in
            let name = pair.prefix { $0 != "=" }
            return !rules.ignoredQueryNames.contains(name.removingPercentEncoding ?? String(name))
        }
        let fields = rules.comparedHeaders.map { $0.lowercased() }.sorted().map { name in
            "\(name): \(headers.values(name).joined(separator: ", "))"
        }
        // A recording that was edited or made by an earlier version may spell the host differently.
        let origin = AddressReference(String(address)).origin ?? String(address[..<slash])
        parts = [
            method, rules.comparesHost ? origin : "", String(address[slash...]),
            pairs.joined(separator: "&"), rules.comparesBody ? body : "", fields.joined(separator: "; "),
        ]
    }

    subscript(_ part: Part) -> String { parts[Part.allCases.firstIndex(of: part) ?? 0] }

    /// In which parts they differ.
    func differences(from other: PlaybackKey) -> [Part] {
        Part.allCases.filter { !agrees(with: other, in: $0) }
    }

    /// How much they have in common: the path counts most.
    func likeness(to other: PlaybackKey) -> Int {
        let worth: [Part: Int] = [.path: 8, .method: 4, .host: 2, .query: 2, .body: 1, .headers: 1]
        let same = Part.allCases.filter { agrees(with: other, in: $0) }.reduce(0) { $0 + (worth[$1] ?? 0) }
        // Of two other paths, the one that begins in the same way.
        return 100 * same + min(zip(self[.path], other[.path]).prefix { $0 == $1 }.count, 99)
    }

    private func agrees(with other: PlaybackKey, in part: Part) -> Bool {
        self[part] == other[part] || part == .body && [self[part], other[part]].contains(Self.anyBody)
    }

    static func body(_ data: Data) -> String { SHA256.checksum(of: data, startingWith: SHA256()).hexadecimal }
}
