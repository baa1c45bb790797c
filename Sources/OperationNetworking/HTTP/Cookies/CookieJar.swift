// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An object that stores the cookies from responses and adds them to later requests, as RFC 6265bis specifies.
///
/// ```swift
/// func remember(_ fields: [String], from page: URL) async throws {
///     let support = FileManager.default.urls(
///         for: .applicationSupportDirectory, in: .userDomainMask)[0]
///     let file = support.appendingPathComponent("com.example.shop/cookies.json")
///     let jar = try CookieJar(storage: FileCookieStorage(url: file))
///     jar.receive(fields, from: page)
///     print(jar.header(for: page) ?? "none")
///     try await jar.save()
/// }
/// ```
///
/// You can use a jar from any thread. The jar saves changes in the background, and saves changes in quick succession
/// together. To wait until the jar has saved all changes, call ``save()``. The jar never saves session cookies, which
/// have no expiration date.
public final class CookieJar: Sendable {
    private let state: Locked<(machine: CookieMachine, saving: SaveTurn)>
    private let storage: (any CookieStorage)?
    private let limits: CookieLimits
    private let suffixes: CookieMachine.SuffixRule
    private let now: @Sendable () -> Date
    private let queue = DispatchQueue(label: "OperationKit.CookieJar", qos: .utility)

    /// Creates an empty jar that keeps its cookies only in memory.
    ///
    /// - Parameter isPublicSuffix: A closure that returns whether a domain is a public suffix, such as `co.uk`. See
    ///   ``init(storage:isPublicSuffix:)``. The default is `nil`, which uses a built-in list of common suffixes.
    public convenience init(isPublicSuffix: (@Sendable (String) -> Bool)? = nil) {
        self.init(suffixes: isPublicSuffix ?? CookieMachine.isCommonSuffix, now: { Date() })
    }

    /// Creates a jar with the cookies that a ``CookieStorage`` contains.
    ///
    /// The initializer reads the cookies on the calling thread.
    ///
    /// A server cannot set a cookie for all hosts in a public suffix, which is a domain whose subdomains have different
    /// owners. By default, the jar uses a built-in list of public suffixes, which contains only these suffixes:
    ///
    /// - All domains with one label, such as `com`, `de` and `localhost`.
    /// - The common second-level domains of countries, such as `co.uk`, `com.au` and `ac.jp`.
    /// - Some services that provide subdomains to their customers, such as `github.io`, `herokuapp.com` and
    ///   `pages.dev`.
    ///
    /// The list does not contain other suffixes, such as `kobe.jp` and `k12.ca.us`. In these domains, servers that
    /// belong to different owners could set cookies for each other. If your program must prevent this, pass a closure
    /// that uses the complete list.
    ///
    /// - Parameters:
    ///   - storage: The object that stores the cookies between launches of the program.
    ///   - isPublicSuffix: A closure that returns whether a domain is a public suffix. The domain is in lowercase and
    ///     does not begin with a dot. The jar can call the closure on any thread. The default is `nil`, which uses the
    ///     built-in list.
    /// - Throws: The error that the storage throws if the initializer cannot read the cookies.
    public convenience init(
        storage: any CookieStorage, isPublicSuffix: (@Sendable (String) -> Bool)? = nil
    ) throws {
        try self.init(storage: storage, suffixes: isPublicSuffix ?? CookieMachine.isCommonSuffix, now: { Date() })
    }

    package init(
        storage: (any CookieStorage)?, limits: CookieLimits = CookieLimits(),
        suffixes: @escaping CookieMachine.SuffixRule = CookieMachine.isCommonSuffix, now: @escaping @Sendable () -> Date
    ) throws {
        var machine = CookieMachine(limits: limits)
        let moment = now()
        for cookie in try storage?.load() ?? [] { machine.put(cookie, now: moment) }
        state = Locked((machine, SaveTurn()))
        self.storage = storage
        (self.limits, self.suffixes) = (limits, suffixes)
        self.now = now
    }

    package init(
        limits: CookieLimits = CookieLimits(),
        suffixes: @escaping CookieMachine.SuffixRule = CookieMachine.isCommonSuffix, now: @escaping @Sendable () -> Date
    ) {
        state = Locked((CookieMachine(limits: limits), SaveTurn()))
        storage = nil
        (self.limits, self.suffixes) = (limits, suffixes)
        self.now = now
    }

    /// The cookies in the jar that have not expired, in the order in which they were first set.
    public var cookies: [Cookie] {
        let moment = now()
        return state.withLock { $0.machine.cookies }.filter { !$0.isExpired(at: moment) }
    }

    /// Stores the cookies from a response.
    ///
    /// - Parameters:
    ///   - fields: The values of the `Set-Cookie` headers.
    ///   - url: The URL of the response. The jar ignores a cookie that the URL's host must not set, for example a
    ///     cookie for another domain.
    public func receive(_ fields: [String], from url: URL) {
        guard !fields.isEmpty, let address = WebAddress(url) else { return }
        let moment = now()
        // The rule belongs to the user, so it must not be called under the lock.
        let offers = CookieMachine.offers(fields, limits: limits, suffixes: suffixes, now: moment)
        change { $0.receive(offers, from: address, now: moment) }
    }

    /// Returns the value of the `Cookie` header for a request to a URL, or `nil` if no cookie applies to the URL.
    ///
    /// - Parameter url: The absolute URL of the request. The jar ignores a URL whose scheme is neither `http` nor
    ///   `https`.
    public func header(for url: URL) -> String? {
        guard let address = WebAddress(url) else { return nil }
        let moment = now()
        return state.withLock { $0.machine.header(for: address, now: moment) }
    }

    /// Stores a cookie and replaces any existing cookie with the same name, domain, path and ``Cookie/isHostOnly``
    /// value.
    ///
    /// If the new cookie has expired, the jar only removes the existing cookie. The jar ignores a new cookie whose name
    /// or value contains a semicolon, or a control character other than a tab.
    public func set(_ cookie: Cookie) {
        let moment = now()
        change { $0.put(cookie, now: moment) }
    }

    /// Removes all cookies for which a closure returns `true`.
    ///
    /// - Parameter rule: A closure that returns whether to remove a cookie. The jar calls the closure on the calling
    ///   thread for each cookie that has not expired.
    public func remove(where rule: (Cookie) -> Bool) {
        // The closure belongs to the user, so it selects from copies and does not run under the lock.
        let chosen = Set(cookies.filter(rule).map(\.identity))
        change { $0.remove { chosen.contains($0.identity) } }
    }

    /// Removes all cookies from the jar.
    public func removeAll() {
        change { $0.remove { _ in true } }
    }

    /// Removes the session cookies from the jar, as a browser does when it quits.
    public func endSession() {
        change { $0.remove { $0.expires == nil } }
    }

    /// Waits until the jar has saved all previous changes.
    ///
    /// The method returns immediately if the jar has no ``CookieStorage``.
    ///
    /// - Throws: The error that the storage throws if it cannot save the cookies.
    public func save() async throws {
        guard storage != nil else { return }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async { [self] in
                continuation.resume(with: Result { try write() })
            }
        }
    }

    private func change(_ body: (inout CookieMachine) -> Bool) {
        let mustSchedule = state.withLock { state in
            guard body(&state.machine), storage != nil else { return false }
            return state.saving.recordChange()
        }
        // A failed save is repeated with the next change or the next call to `save()`.
        if mustSchedule { queue.async { [self] in try? write() } }
    }

    /// Runs only on `queue`, so that an older state never replaces a newer one.
    private func write() throws {
        let moment = now()
        let cookies: [Cookie]? = state.withLock { state in
            guard state.saving.begin() else { return nil }
            return state.machine.cookies.filter { $0.expires != nil && !$0.isExpired(at: moment) }
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

extension Cookie {
    /// The properties that identify a cookie, and that a new cookie must share with the cookie that it replaces.
    fileprivate var identity: [String] { [name, domain, path, "\(isHostOnly)"] }
}

/// A value that records whether there are changes to save and whether a save is scheduled.
package struct SaveTurn: Equatable, Sendable {
    private enum State: Equatable {
        case clean
        /// There are changes, and a save is scheduled.
        case scheduled
        /// There are changes, but no save is scheduled because the last one failed.
        case unsaved
    }

    private var state = State.clean

    package init() {}

    /// Records a change, and returns whether to schedule a save.
    package mutating func recordChange() -> Bool {
        exchange(&state, with: .scheduled) != .scheduled
    }

    /// Begins a save, and returns whether there are changes to save.
    package mutating func begin() -> Bool {
        exchange(&state, with: .clean) != .clean
    }

    /// Records that a save failed, so that its changes are unsaved unless another save is already scheduled.
    package mutating func fail() {
        if state == .clean { state = .unsaved }
    }
}
