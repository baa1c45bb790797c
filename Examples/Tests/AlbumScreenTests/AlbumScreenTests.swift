// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if SWIFT_5_MODE
    import AlbumScreenSwift5
#else
    import AlbumScreen
#endif

/// The screen without a window: a service that answers from a script, and the states that a view would draw.
@MainActor
@Suite(.timeLimit(.minutes(1)))
struct AlbumScreenTests {
    private let session = StubSession()
    private let screen: AlbumScreen

    init() throws {
        var service = NetworkBase(try #require(URL(string: "http://albums.example")))
        service.session = session
        screen = AlbumScreen(service: service)
    }

    /// Waits until the screen shows what is wanted, and returns all that it showed until then.
    private func states(until isLast: @escaping (AlbumScreen.State) -> Bool) async -> [AlbumScreen.State] {
        var states = [screen.state]
        await withCheckedContinuation { continuation in
            screen.onChange = { [weak screen] state in
                states.append(state)
                guard isLast(state) else { return }
                screen?.onChange = nil
                continuation.resume()
            }
        }
        return states
    }

    @Test func `it shows that it loads, and then the albums`() async {
        session.route("GET", "/albums") { _ in .json(#"[{"title": "Blue Train"}]"#) }
        screen.load()
        let states = await states { if case .loaded = $0 { true } else { false } }
        #expect(states.first == .loading(fraction: nil))
        #expect(screen.state == .loaded([Album(title: "Blue Train")]))
    }

    @Test func `it shows the message of an error`() async {
        session.route("GET", "/albums") { _ in .status(404) }
        screen.load()
        _ = await states { if case .failed = $0 { true } else { false } }
        #expect(screen.state == .failed("The server answered 404 (Not Found)."))
    }

    @Test func `it shows how much has come`() async {
        let gate = Gate()
        session.route("GET", "/albums") { _ in
            StubAnswer(
                .head(200, ["Content-Length": "25", "Content-Type": "application/json"]), .bytes(#"[{"title": "#),
                .stall(until: gate), .bytes(#""Blue Train"}]"#))
        }
        screen.load()
        let states = await states { if case .loading(let fraction?) = $0 { fraction > 0 } else { false } }
        #expect(states.contains(.loading(fraction: 0.44)))
        gate.open()
        _ = await self.states { if case .loaded = $0 { true } else { false } }
        #expect(screen.state == .loaded([Album(title: "Blue Train")]))
    }

    @Test func `nothing changes after it was canceled`() async throws {
        let gate = Gate()
        session.route("GET", "/albums") { _ in .json("[]").after(gate) }
        screen.load()
        screen.cancel()
        #expect(screen.state == .empty)
        var changes: [AlbumScreen.State] = []
        screen.onChange = { changes.append($0) }
        gate.open()
        // Another screen loads its list after whatever the first one would have changed.
        let other = try AlbumScreenTests()
        other.session.route("GET", "/albums") { _ in .json("[]") }
        other.screen.load()
        _ = await other.states { if case .loaded = $0 { true } else { false } }
        #expect(changes == [])
        screen.onChange = nil
        session.route("GET", "/albums") { _ in .json(#"[{"title": "Giant Steps"}]"#) }
        screen.load()
        _ = await states { if case .loaded = $0 { true } else { false } }
        screen.cancel()
        #expect(screen.state == .loaded([Album(title: "Giant Steps")]))
    }
}
