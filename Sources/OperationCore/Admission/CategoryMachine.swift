// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Who holds which categories and who waits for them, as a pure value.
///
/// A party asks for all its categories in one step and gets all of them or waits in the line of each. It is served when
/// it is the first of each of its lines and each has room. So what came earlier is never overtaken within a category,
/// and nobody holds one category while waiting for another: two parties cannot wait for each other.
package struct CategoryMachine<Key: Hashable, Party: Hashable> {
    /// One category that a party asks for, and how many may hold it.
    package struct Demand {
        let key: Key
        let limit: Int

        package init(_ key: Key, limit: Int) {
            self.key = key
            self.limit = max(limit, 1)
        }
    }

    private struct Line {
        let limit: Int
        var holders = ArrivalLine<Party>()
        var waiting = ArrivalLine<Party>()

        var hasRoom: Bool { holders.count < limit }
    }

    private struct Claim {
        let keys: [Key]
        var isHeld: Bool
    }

    private var lines: [Key: Line] = [:]
    private var claims: [Party: Claim] = [:]

    package init() {}

    /// Whether nobody holds or waits for anything.
    package var isEmpty: Bool { lines.isEmpty && claims.isEmpty }

    /// Those that hold a category, the one that got it first at the front.
    package func holders(of key: Key) -> [Party] { lines[key]?.holders.all ?? [] }

    /// Those that wait for a category, the next one at the front.
    package func waiting(for key: Key) -> [Party] { lines[key]?.waiting.all ?? [] }

    package func waitingCount(for key: Key) -> Int { lines[key]?.waiting.count ?? 0 }

    /// Asks for categories, of which there is none twice; returns whether the party holds all of them now.
    ///
    /// If not, it waits until a call of `leave` names it.
    package mutating func ask(_ party: Party, for demands: [Demand]) -> Bool {
        if let claim = claims[party] { return claim.isHeld }
        let keys = demands.map(\.key)
        for demand in demands where lines[demand.key] == nil { lines[demand.key] = Line(limit: demand.limit) }
        let isFree = keys.allSatisfy { lines[$0].map { $0.hasRoom && $0.waiting.isEmpty } ?? true }
        claims[party] = Claim(keys: keys, isHeld: isFree)
        for key in keys {
            if isFree { lines[key]?.holders.append(party) } else { lines[key]?.waiting.append(party) }
        }
        return isFree
    }

    /// The party gives back what it holds, or waits no more; returns those that hold theirs because of it.
    package mutating func leave(_ party: Party) -> [Party] {
        guard let claim = claims.removeValue(forKey: party) else { return [] }
        for key in claim.keys {
            if claim.isHeld { lines[key]?.holders.remove(party) } else { lines[key]?.waiting.remove(party) }
        }
        return serve(claim.keys)
    }

    /// Serves the first ones of these lines, and of the lines that move because of that, while that is possible.
    private mutating func serve(_ moved: [Key]) -> [Party] {
        var served: [Party] = []
        var moved = moved
        while let key = moved.popLast() {
            while let party = lines[key]?.waiting.first, let keys = claims[party]?.keys, canHold(party, keys) {
                for key in keys {
                    lines[key]?.waiting.remove(party)
                    lines[key]?.holders.append(party)
                }
                claims[party]?.isHeld = true
                served.append(party)
                // Where several may hold one, the next in the other lines may have its turn too.
                moved += keys.filter { $0 != key }
            }
            if let line = lines[key], line.holders.isEmpty, line.waiting.isEmpty { lines[key] = nil }
        }
        return served
    }

    private func canHold(_ party: Party, _ keys: [Key]) -> Bool {
        keys.allSatisfy { key in lines[key].map { $0.hasRoom && $0.waiting.first == party } ?? false }
    }
}
