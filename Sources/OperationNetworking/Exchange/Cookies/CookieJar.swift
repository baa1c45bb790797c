// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Keeps the cookies that servers set and sends them back, as RFC 6265bis asks; safe from any thread.
///
/// ```swift
/// func remember(_ fields: [String], from page: URL) async throws {
///     let support = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0]
///     let file = support.appendingPathComponent("com.example.shop/cookies.json")
///     let jar = try CookieJar(storage: FileCookieStorage(url: file))
///     jar.receive(fields, from: page)
///     print(jar.header(for: page) ?? "none")
///     try await jar.save()
/// }
/// ```
///
/// Changes are saved in the background, several at once where they come quickly; ``save()`` waits for that. Cookies that
/// end with the session are never saved.
public final class CookieJar: Sendable {
    private struct State {
        var shelf: CookieShelf
        var saving = SaveTurn()
    }

    private let state: Locked<State>
    private let storage: (any CookieStorage)?
    private let limits: CookieLimits
    private let suffixes: PublicSuffixRule
    private let now: @Sendable () -> Date
    private let queue = DispatchQueue(label: "OperationKit.CookieJar", qos: .utility)

    /// Makes a jar with the cookies that are in a storage; reads them on the calling thread.
    ///
    /// - Parameters:
    ///   - storage: Where cookies are kept from one run to the next; nil for nowhere.
    ///   - limits: How much the jar holds.
    ///   - suffixes: Which domains belong to nobody alone.
    ///   - now: What time it is.
    /// - Throws: What the storage throws when it cannot be read.
    public init(
        storage: (any CookieStorage)?, limits: CookieLimits = CookieLimits(), suffixes: PublicSuffixRule = .builtIn,
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        var shelf = CookieShelf(limits: limits, suffixes: suffixes)
        let moment = now()
        for cookie in try storage?.load() ?? [] { shelf.put(cookie, now: moment) }
        state = Locked(State(shelf: shelf))
        self.storage = storage
        (self.limits, self.suffixes) = (limits, suffixes)
        self.now = now
    }

    /// Makes an empty jar that is kept nowhere.
    public init(
        limits: CookieLimits = CookieLimits(), suffixes: PublicSuffixRule = .builtIn,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        state = Locked(State(shelf: CookieShelf(limits: limits, suffixes: suffixes)))
        storage = nil
        (self.limits, self.suffixes) = (limits, suffixes)
        self.now = now
    }

    /// All cookies that are not over, in the order in which they were set.
    public var cookies: [Cookie] {
        let moment = now()
        return state.withLock { $0.shelf.cookies }.filter { !$0.isExpired(at: moment) }
    }

    /// Takes in the values of the `Set-Cookie` fields of a response.
    public func receive(_ fields: [String], from url: URL) {
        guard !fields.isEmpty, let address = WebAddress(url) else { return }
        let moment = now()
        // The rule is the user's, and is not asked under the lock.
        let offers = CookieShelf.offers(fields, limits: limits, suffixes: suffixes, now: moment)
        change { $0.receive(offers, from: address, now: moment) }
    }

    /// The value of the `Cookie` field of a request to a URL; nil if no cookie goes with it.
    public func header(for url: URL) -> String? {
        guard let address = WebAddress(url) else { return nil }
        let moment = now()
        return state.withLock { $0.shelf.header(for: address, now: moment) }
    }

    /// Puts a cookie of your own into the jar, in the place of the one of the same name, domain and path.
    public func set(_ cookie: Cookie) {
        let moment = now()
        change { $0.put(cookie, now: moment) }
    }

    /// Removes the cookies for which `rule` says so.
    public func remove(where rule: (Cookie) -> Bool) {
        // The rule is the user's, and does not run under the lock: it chooses among copies.
        let chosen = Set(cookies.filter(rule).map(CookieIdentity.init))
        change { $0.remove { chosen.contains(CookieIdentity($0)) } }
    }

    /// Removes all cookies.
    public func removeAll() {
        change { $0.remove { _ in true } }
    }

    /// Removes the cookies that end with the session: what closing the browser does.
    public func endSession() {
        change { $0.remove { $0.expires == nil } }
    }

    /// Waits until all changes so far are saved.
    ///
    /// - Throws: What the storage throws when it cannot be written.
    public func save() async throws {
        guard storage != nil else { return }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async { [self] in
                continuation.resume(with: Result { try write() })
            }
        }
    }

    private func change(_ body: (inout CookieShelf) -> Bool) {
        let mustSchedule = state.withLock { state in
            guard body(&state.shelf), storage != nil else { return false }
            return state.saving.noteChange()
        }
        // What cannot be saved now is tried again with the next change, and told to whoever calls `save()`.
        if mustSchedule { queue.async { [self] in try? write() } }
    }

    /// Only on `queue`, so that an older state never takes the place of a newer one.
    private func write() throws {
        let moment = now()
        let cookies: [Cookie]? = state.withLock { state in
            guard state.saving.begin() else { return nil }
            return state.shelf.cookies.filter { $0.expires != nil && !$0.isExpired(at: moment) }
        }
        guard let cookies else { return }
        do {
            try storage?.save(cookies)
        } catch {
            state.withLock { $0.saving.fail() }
            throw error
        }
    }
}

/// What tells one cookie from another.
private struct CookieIdentity: Hashable {
    let name: String
    let domain: String
    let path: String
    let isHostOnly: Bool

    init(_ cookie: Cookie) {
        name = cookie.name
        domain = cookie.domain
        path = cookie.path
        isHostOnly = cookie.isHostOnly
    }
}
