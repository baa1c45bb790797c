// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationTestKit

/// A service in this process with one person, twelve albums of three songs, and five shows of four videos.
struct MediaServer {
    let server: LoopbackServer

    /// The number of requests that are necessary to fetch all songs and videos.
    static let requestCount = 1 + 1 + 12 + 1 + 5

    /// Creates a service that responds after a short delay, as over a network.
    init(after pause: Duration = .milliseconds(30)) throws {
        server = try LoopbackServer()
        server.route("GET", "/*") { Self.answer(to: $0.path).after(pause) }
    }

    private static func answer(to path: String) -> LoopbackAnswer {
        let parts = path.split(separator: "/").map(String.init)
        switch (parts.first, parts.last) {
        case ("people", "albums"): return list(12) { #"{"id":\#($0)}"# }
        case ("people", "shows"): return list(5) { #"{"id":\#($0)}"# }
        case ("people", _): return .json(#"{"id":1}"#)
        case ("albums", _): return list(3) { #"{"title":"Album \#(parts[1]), song \#($0)"}"# }
        case ("shows", _): return list(4) { #"{"title":"Show \#(parts[1]), part \#($0)"}"# }
        default: return .status(404)
        }
    }

    private static func list(_ count: Int, _ make: (Int) -> String) -> LoopbackAnswer {
        .json("[" + (1...count).map(make).joined(separator: ",") + "]")
    }
}
