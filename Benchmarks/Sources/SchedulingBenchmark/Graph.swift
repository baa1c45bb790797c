// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A graph of dependencies between numbered operations, each of which depends only on operations with lower numbers.
///
/// The graph is created before the measurement, because its creation does not count.
struct Graph {
    enum Shape { case chain, tree, wavefront, traversal, fan }

    private(set) var count = 0
    /// The index in `sources` at which the dependencies of each node begin, followed by the end of the last node.
    private var starts: [Int] = [0]
    private var sources: [Int32] = []
    /// A Boolean value that indicates whether the last operation runs after all others.
    private(set) var hasOneEnd = false

    private init(hasOneEnd: Bool = false) {
        self.hasOneEnd = hasOneEnd
    }

    /// Returns the dependencies of a node.
    subscript(node: Int) -> ArraySlice<Int32> { sources[starts[node]..<starts[node + 1]] }

    private mutating func append(after upstream: some Sequence<Int>) {
        sources.append(contentsOf: upstream.lazy.map { Int32($0) })
        starts.append(sources.count)
        count += 1
    }
}

// The shapes of graphs, as in taskflow's benchmarks.
extension Graph {
    /// Creates a graph with a number of nodes, or with fewer nodes if the shape requires this.
    init(_ shape: Shape, _ count: Int) {
        switch shape {
        case .chain: self = .chain(count)
        case .tree: self = .tree(count)
        case .wavefront: self = .wavefront(side: Int(Double(count).squareRoot()))
        case .traversal: self = .traversal(side: Int(Double(count).squareRoot()))
        case .fan: self = .fan(count)
        }
    }

    /// Returns a chain in which each node depends on the previous node.
    static func chain(_ count: Int) -> Graph {
        var graph = Graph(hasOneEnd: true)
        for node in 0..<count { graph.append(after: node > 0 ? [node - 1] : []) }
        return graph
    }

    /// Returns a binary tree in which two nodes depend on each node, numbered as in a heap.
    static func tree(_ count: Int) -> Graph {
        var graph = Graph()
        for node in 0..<count { graph.append(after: node > 0 ? [(node - 1) / 2] : []) }
        return graph
    }

    /// Returns a square in which each node depends on its left and upper neighbors.
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

    /// Returns a square of levels, in which one to four nodes of the next level depend on each node.
    static func traversal(side: Int) -> Graph {
        var graph = Graph()
        var random = FixedRandom()
        for _ in 0..<side { graph.append(after: []) }
        for level in 1..<max(side, 1) {
            var upstream = [[Int]](repeating: [], count: side)
            for node in 0..<side {
                for offset in 0...Int(random.next() % 4) {
                    // The stride is not a divisor of common sizes, so it leads to a different node each time.
                    upstream[(node + offset * 7) % side].append((level - 1) * side + node)
                }
            }
            upstream.shuffle(using: &random)
            for sources in upstream { graph.append(after: Set(sources).sorted()) }
        }
        return graph
    }

    /// Returns a graph with one node, many nodes that depend on it, and a last node that depends on all of these.
    static func fan(_ count: Int) -> Graph {
        var graph = Graph(hasOneEnd: true)
        for node in 0..<count - 1 { graph.append(after: node > 0 ? [0] : []) }
        graph.append(after: Array(1..<count - 1))
        return graph
    }
}

/// A generator that produces the same numbers in each run (SplitMix64).
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
