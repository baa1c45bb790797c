// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Which files of a cache go when it has become too large: a value, so that it can be tried without a disk.
package enum CacheTrim {
    /// How old a file without a card must be before it counts as left behind by a program that ended.
    static let grace: TimeInterval = 3600

    /// The files to be removed.
    ///
    /// - Parameters:
    ///   - files: All files in the folder.
    ///   - limit: How many bytes may stay.
    ///   - recency: Which addresses this program used, the higher the later; the others were used before.
    ///   - now: What time it is.
    package static func plan(
        _ files: [CacheFile], limit: Int64, recency: [String: UInt64], now: Date
    ) -> [CacheFile] {
        let leftBehind = files.filter { $0.isPart && now.timeIntervalSince($0.used) > grace }
        let parts = files.filter { $0.isPart && now.timeIntervalSince($0.used) <= grace }
        let groups = Dictionary(grouping: files.filter { $0.isCard || $0.isBody }, by: \.key)
        var removed = leftBehind
        var kept: [(key: String, files: [CacheFile])] = []
        for (key, group) in groups {
            let newest = group.map(\.used).max() ?? .distantPast
            // Bodies come before their card: those without one may be waiting for it.
            if group.contains(where: \.isCard) || now.timeIntervalSince(newest) <= grace {
                kept.append((key, group))
            } else {
                removed += group
            }
        }
        kept.sort { one, other in
            let (left, right) = (recency[one.key] ?? 0, recency[other.key] ?? 0)
            return left == right ? used(one.files) < used(other.files) : left < right
        }
        var total = size(parts).addingSaturated(kept.map { size($0.files) }.saturatedSum)
        for group in kept {
            guard total > limit else { break }
            removed += group.files
            total -= size(group.files)
        }
        return removed
    }

    private static func size(_ files: [CacheFile]) -> Int64 { files.map(\.size).saturatedSum }

    private static func used(_ files: [CacheFile]) -> Date {
        files.first(where: \.isCard)?.used ?? files.map(\.used).max() ?? .distantPast
    }
}
