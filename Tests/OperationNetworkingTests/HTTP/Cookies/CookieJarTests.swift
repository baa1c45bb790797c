// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CookieJarTests {
    private let url = URL(fileURLWithPath: "/nowhere")

    private func home() throws -> URL { try #require(URL(string: "https://h.com/x")) }

    private func temporaryFile() -> URL {
        FileManager.default.temporaryDirectory.appendingPathComponent("operationkit-\(UUID())/deep/cookies.json")
    }

    @Test func `persistent cookies are saved to the file, and session cookies are not`() async throws {
        let file = temporaryFile()
        defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent().deletingLastPathComponent()) }
        let first = try CookieJar(storage: FileCookieStorage(url: file))
        try first.receive(["a=1; Max-Age=1000; HttpOnly; SameSite=Lax", "b=2"], from: home())
        try await first.save()
        let second = try CookieJar(storage: FileCookieStorage(url: file))
        #expect(second.cookies == first.cookies.filter { $0.name == "a" })
        #expect(try second.header(for: home()) == "a=1")
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        second.removeAll()
        try await second.save()
        #expect(try CookieJar(storage: FileCookieStorage(url: file)).cookies.isEmpty)
    }

    @Test func `the public suffix rule can use the cookie jar`() async throws {
        let url = try home()
        let passed = try await TestThread.run {
            let passed = Locked(0)
            let box = Locked<CookieJar?>(nil)
            let jar = CookieJar(
                isPublicSuffix: { _ in
                    let isDone = DispatchSemaphore(value: 0)
                    DispatchQueue.global().async {
                        _ = box.withLock { $0 }?.cookies
                        isDone.signal()
                    }
                    if isDone.wait(timeout: .now() + 60) == .success { passed.withLock { $0 += 1 } }
                    return false
                })
            box.withLock { $0 = jar }
            jar.receive(["a=1; Domain=h.com", "b=2; Domain=h.com"], from: url)
            #expect(jar.header(for: url) == "a=1; b=2")
            box.withLock { $0 = nil }
            return passed.withLock { $0 }
        }
        #expect(passed == 2)
    }

    @Test func `an invalid cookie file throws an error and is not overwritten`() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("operationkit-\(UUID()).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("{".utf8).write(to: file)
        #expect(throws: (any Error).self) { try CookieJar(storage: FileCookieStorage(url: file)) }
        #expect(try Data(contentsOf: file) == Data("{".utf8))
    }

    @Test func `a failed save throws to the caller, and the cookies are saved later`() async throws {
        let storage = FailingStorage()
        let jar = try CookieJar(storage: storage)
        storage.fails.withLock { $0 = true }
        try jar.receive(["a=1; Max-Age=1000"], from: home())
        await #expect(throws: CocoaError.self) {
            // The change is also saved in the background. One of the two failures is thrown here.
            try await jar.save()
            try jar.receive(["b=1; Max-Age=1000"], from: self.home())
            try await jar.save()
        }
        storage.fails.withLock { $0 = false }
        try await jar.save()
        #expect(storage.saved.withLock { $0 }.map(\.name).first == "a")
    }

    @Test func `endSession and remove delete cookies, and a cookie set in code is sent`() throws {
        let jar = CookieJar()
        try jar.receive(["a=1; Max-Age=1000", "b=2", "c=3"], from: home())
        jar.remove { $0.name == "c" }
        #expect(jar.cookies.map(\.name) == ["a", "b"])
        jar.endSession()
        #expect(jar.cookies.map(\.name) == ["a"])
        jar.set(Cookie(name: "own", value: "v", domain: "H.com"))
        #expect(try jar.header(for: home()) == "a=1; own=v")
        #expect(jar.header(for: url) == nil)
        #expect(jar.cookies.map(\.description) == ["a of h.com/", "own of h.com/"])
    }

    @Test func `cookies received concurrently on many threads are all kept`() async throws {
        let storage = FailingStorage()
        let limits = with(CookieLimits()) { $0.perDomain = 1000 }
        let jar = try CookieJar(storage: storage, limits: limits, now: { Date() })
        let url = try home()
        try await TestThread.run {
            DispatchQueue.concurrentPerform(iterations: 8) { thread in
                for index in 0..<50 {
                    jar.receive(["c\(thread)-\(index)=1; Max-Age=1000"], from: url)
                    _ = jar.header(for: url)
                }
            }
        }
        try await jar.save()
        #expect(jar.cookies.count == 400)
        #expect(storage.saved.withLock { $0 }.count == 400)
    }

    @Test func `a save is scheduled once for several changes and repeated after a failure`() {
        var turn = SaveTurn()
        var answers = [turn.begin(), turn.recordChange(), turn.recordChange(), turn.begin(), turn.recordChange()]
        turn.fail()
        answers += [turn.recordChange(), turn.begin()]
        turn.fail()
        answers.append(turn.begin())
        #expect(answers == [false, true, false, true, true, false, true, true])
    }
}

private final class FailingStorage: CookieStorage {
    let fails = Locked(false)
    let saved = Locked<[Cookie]>([])

    func load() -> [Cookie] { [] }

    func save(_ cookies: [Cookie]) throws {
        if fails.withLock({ $0 }) { throw CocoaError(.fileWriteUnknown) }
        saved.withLock { $0 = cookies }
    }
}
