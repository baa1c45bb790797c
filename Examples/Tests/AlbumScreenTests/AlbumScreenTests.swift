// Part of OperationKit, released under the MIT license.
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

/// Tests the states of the screen, without a window and with scripted responses.
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

    /// Waits until the screen has a certain state, and returns all states until then.
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

    @Test func `the screen shows its progress, and then the albums`() async {
        session.route("GET", "/albums") { _ in .json(#"[{"title": "Blue Train"}]"#) }
        screen.load()
        let states = await states { if case .loaded = $0 { true } else { false } }
        #expect(states.first == .loading(fraction: nil))
        #expect(screen.state == .loaded([Album(title: "Blue Train")]))
    }

    @Test func `the screen shows the message of an error`() async {
        session.route("GET", "/albums") { _ in .status(404) }
        screen.load()
        _ = await states { if case .failed = $0 { true } else { false } }
        #expect(screen.state == .failed("The server answered 404 (Not Found)."))
    }

    @Test func `the screen shows the fraction that was received`() async {
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

    @Test func `nothing changes after a cancellation`() async throws {
        let gate = Gate()
        session.route("GET", "/albums") { _ in .json("[]").after(gate) }
        screen.load()
        screen.cancel()
        #expect(screen.state == .empty)
        var changes: [AlbumScreen.State] = []
        screen.onChange = { changes.append($0) }
        gate.open()
        // Another screen loads its list, which takes longer than any late change of the first screen.
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
