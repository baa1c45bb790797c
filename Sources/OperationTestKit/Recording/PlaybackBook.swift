// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// Which recorded exchange answers which request: a pure value.
struct PlaybackBook: Sendable {
    private let keys: [PlaybackKey]
    /// The numbers of those that were not used yet, by what they answer.
    private var left: [PlaybackKey: ArraySlice<Int>] = [:]
    private var used: Set<Int> = []

    init(_ keys: [PlaybackKey]) {
        self.keys = keys
        for (number, key) in keys.enumerated() { left[key, default: []].append(number) }
    }

    /// Those that were not used yet.
    var unused: [Int] { keys.indices.filter { !used.contains($0) } }

    /// Takes the first exchange that answers one of these forms of a request.
    mutating func take(_ forms: [PlaybackKey]) -> Int? {
        let fitting = forms.compactMap { key in left[key]?.first.map { (number: $0, key: key) } }
        guard let first = fitting.min(by: { $0.number < $1.number }) else { return nil }
        left[first.key]?.removeFirst()
        used.insert(first.number)
        return first.number
    }

    /// The exchange that is most like a request which none answers, and in what it differs.
    func nearest(to key: PlaybackKey) -> (number: Int, differences: [PlaybackKey.Part])? {
        let likeness = keys.map { $0.likeness(to: key) }
        // Rather one that is left over than one that was used.
        let nearest = keys.indices.max { left, right in
            (likeness[left], used.contains(left) ? 0 : 1, right) < (likeness[right], used.contains(right) ? 0 : 1, left)
        }
        return nearest.map { ($0, keys[$0].differences(from: key)) }
    }
}
