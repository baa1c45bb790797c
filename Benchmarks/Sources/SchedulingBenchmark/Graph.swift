// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which operations wait for which, by number; each waits only for lower numbers.
///
/// Made before the clock runs: how it was thought up is not what is measured.
struct Graph {
    enum Shape { case chain, tree, wavefront, traversal, fan }

    private(set) var count = 0
    /// Where in `sources` those of each node begin, and after the last one where all end.
    private var starts: [Int] = [0]
    private var sources: [Int32] = []
    /// Whether the last one runs after all others.
    private(set) var hasOneEnd = false

    private init(hasOneEnd: Bool = false) {
        self.hasOneEnd = hasOneEnd
    }

    /// What a node waits for.
    subscript(node: Int) -> ArraySlice<Int32> { sources[starts[node]..<starts[node + 1]] }

    private mutating func append(after upstream: some Sequence<Int>) {
        sources.append(contentsOf: upstream.lazy.map { Int32($0) })
        starts.append(sources.count)
        count += 1
    }
}

// The shapes, as in taskflow's benchmarks.
extension Graph {
    /// That many nodes, or as many below as make the shape complete.
    init(_ shape: Shape, _ count: Int) {
        switch shape {
        case .chain: self = .chain(count)
        case .tree: self = .tree(count)
        case .wavefront: self = .wavefront(side: Int(Double(count).squareRoot()))
        case .traversal: self = .traversal(side: Int(Double(count).squareRoot()))
        case .fan: self = .fan(count)
        }
    }

    /// Each after the one before.
    static func chain(_ count: Int) -> Graph {
        var graph = Graph(hasOneEnd: true)
        for node in 0..<count { graph.append(after: node > 0 ? [node - 1] : []) }
        return graph
    }

    /// Each before two others, numbered as in a heap.
    static func tree(_ count: Int) -> Graph {
        var graph = Graph()
        for node in 0..<count { graph.append(after: node > 0 ? [(node - 1) / 2] : []) }
        return graph
    }

    /// A square in which each is after its left and its upper neighbour.
    static func wavefront(side: Int) -> Graph {
        var graph = Graph(hasOneEnd: true)
        for row in 0..<side {
            for column in 0..<side {
                let node = row * side + column
                graph.append(after: (row > 0 ? [node - side] : []) + (column > 0 ? [node - 1] : []))
            }
        }
        return graph
    }

    /// Levels as wide as they are many, each node before one to four of the next level.
    static func traversal(side: Int) -> Graph {
        var graph = Graph()
        var random = FixedRandom()
        for _ in 0..<side { graph.append(after: []) }
        for level in 1..<max(side, 1) {
            var upstream = [[Int]](repeating: [], count: side)
            for node in 0..<side {
                for offset in 0...Int(random.next() % 4) {
                    // A stride that is no divisor of usual sides reaches another node each time.
                    upstream[(node + offset * 7) % side].append((level - 1) * side + node)
                }
            }
            upstream.shuffle(using: &random)
            for sources in upstream { graph.append(after: Set(sources).sorted()) }
        }
        return graph
    }

    /// One, then many that wait for it, then one that waits for the many.
    static func fan(_ count: Int) -> Graph {
        var graph = Graph(hasOneEnd: true)
        for node in 0..<count - 1 { graph.append(after: node > 0 ? [0] : []) }
        graph.append(after: Array(1..<count - 1))
        return graph
    }
}

/// The same numbers each time (SplitMix64).
struct FixedRandom: RandomNumberGenerator {
    private var state: UInt64 = 0

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
