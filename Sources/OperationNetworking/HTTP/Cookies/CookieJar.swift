// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// A jar that stores the cookies that servers set and sends them back, as RFC 6265bis specifies.
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
/// You can use a jar from any thread. The jar saves changes in the background, and combines changes that follow each
/// other quickly. To wait until all changes are saved, call ``save()``. Session cookies, which have no expiration date,
/// are never saved.
public final class CookieJar: Sendable {
    private struct State {
        var store: CookieStore
        var saving = SaveTurn()
    }

    private let state: Locked<State>
    private let storage: (any CookieStorage)?
    private let limits: CookieLimits
    private let suffixes: PublicSuffixRule
    private let now: @Sendable () -> Date
    private let queue = DispatchQueue(label: "OperationKit.CookieJar", qos: .utility)

    /// Creates a jar with the cookies in a storage, which is read on the calling thread.
    ///
    /// - Parameters:
    ///   - storage: The storage that keeps the cookies between launches of the program, or `nil` to keep them in memory
    ///     only.
    ///   - limits: The limits on the number and the size of cookies.
    ///   - suffixes: The rule that identifies public suffixes. The default is ``PublicSuffixRule/builtIn``.
    ///   - now: A closure that returns the current date. The jar can call it on any thread. The default returns the
    ///     date of the system.
    /// - Throws: The error of the storage if the storage cannot be read.
    public init(
        storage: (any CookieStorage)?, limits: CookieLimits = CookieLimits(), suffixes: PublicSuffixRule = .builtIn,
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        var store = CookieStore(limits: limits, suffixes: suffixes)
        let moment = now()
        for cookie in try storage?.load() ?? [] { store.put(cookie, now: moment) }
        state = Locked(State(store: store))
        self.storage = storage
        (self.limits, self.suffixes) = (limits, suffixes)
        self.now = now
    }

    /// Creates an empty jar that keeps its cookies in memory only.
    ///
    /// - Parameters:
    ///   - limits: The limits on the number and the size of cookies.
    ///   - suffixes: The rule that identifies public suffixes. The default is ``PublicSuffixRule/builtIn``.
    ///   - now: A closure that returns the current date. The jar can call it on any thread. The default returns the
    ///     date of the system.
    public init(
        limits: CookieLimits = CookieLimits(), suffixes: PublicSuffixRule = .builtIn,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        state = Locked(State(store: CookieStore(limits: limits, suffixes: suffixes)))
        storage = nil
        (self.limits, self.suffixes) = (limits, suffixes)
        self.now = now
    }

    /// All cookies that have not expired, in the order in which they were set.
    public var cookies: [Cookie] {
        let moment = now()
        return state.withLock { $0.store.cookies }.filter { !$0.isExpired(at: moment) }
    }

    /// Stores the cookies of a response.
    ///
    /// - Parameters:
    ///   - fields: The values of the `Set-Cookie` headers.
    ///   - url: The URL of the response, whose server may set cookies for its own host and domain only.
    public func receive(_ fields: [String], from url: URL) {
        guard !fields.isEmpty, let address = WebAddress(url) else { return }
        let moment = now()
        // The rule belongs to the user, so it must not be called under the lock.
        let offers = CookieStore.offers(fields, limits: limits, suffixes: suffixes, now: moment)
        change { $0.receive(offers, from: address, now: moment) }
    }

    /// Returns the value of the `Cookie` header of a request to a URL, or `nil` if no cookie is sent with it.
    public func header(for url: URL) -> String? {
        guard let address = WebAddress(url) else { return nil }
        let moment = now()
        return state.withLock { $0.store.header(for: address, now: moment) }
    }

    /// Stores a cookie in place of the cookie with the same name, domain, path and ``Cookie/isHostOnly`` value.
    ///
    /// If the cookie has expired, the jar only removes the existing cookie. The jar ignores a cookie whose name or
    /// value contains a control character or a semicolon.
    public func set(_ cookie: Cookie) {
        let moment = now()
        change { $0.put(cookie, now: moment) }
    }

    /// Removes the cookies for which a closure returns `true`.
    ///
    /// - Parameter rule: A closure that the jar calls on the calling thread, once for each cookie that has not expired.
    public func remove(where rule: (Cookie) -> Bool) {
        // The closure belongs to the user, so it selects from copies and does not run under the lock.
        let chosen = Set(cookies.filter(rule).map(CookieIdentity.init))
        change { $0.remove { chosen.contains(CookieIdentity($0)) } }
    }

    /// Removes all cookies.
    public func removeAll() {
        change { $0.remove { _ in true } }
    }

    /// Removes all session cookies, as a browser does when it closes.
    public func endSession() {
        change { $0.remove { $0.expires == nil } }
    }

    /// Waits until all changes so far are saved.
    ///
    /// The method returns immediately if the jar has no storage.
    ///
    /// - Throws: The error of the storage if the cookies cannot be written.
    public func save() async throws {
        guard storage != nil else { return }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async { [self] in
                continuation.resume(with: Result { try write() })
            }
        }
    }

    private func change(_ body: (inout CookieStore) -> Bool) {
        let mustSchedule = state.withLock { state in
            guard body(&state.store), storage != nil else { return false }
            return state.saving.noteChange()
        }
        // A failed save is repeated with the next change or the next call of `save()`.
        if mustSchedule { queue.async { [self] in try? write() } }
    }

    /// Runs only on `queue`, so that an older state never replaces a newer one.
    private func write() throws {
        let moment = now()
        let cookies: [Cookie]? = state.withLock { state in
            guard state.saving.begin() else { return nil }
            return state.store.cookies.filter { $0.expires != nil && !$0.isExpired(at: moment) }
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

/// The properties that identify a cookie.
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

/// The rules that match cookies to requests (RFC 6265bis, sections 5.1.3 and 5.1.4).
package enum CookieMatching {
    /// Returns whether a host is equal to a domain or belongs to it.
    package static func isHost(_ host: String, in domain: String) -> Bool {
        if host == domain { return true }
        return !domain.isEmpty && host.hasSuffix("." + domain) && !HostName.isAddress(host)
    }

    /// Returns whether a path is equal to another path or lies under it.
    package static func isPath(_ path: String, under prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        return path.utf8.count == prefix.utf8.count || prefix.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(prefix.utf8.count).first == UInt8(ascii: "/")
    }

    /// Returns the default path of a cookie, which is derived from the path of the request.
    package static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let last = path.utf8.lastIndex(of: UInt8(ascii: "/")), last != path.startIndex else {
            return "/"
        }
        return String(path[..<last])
    }

    /// Returns a host and the domains to which it belongs.
    package static func domains(of host: String) -> [String] {
        guard !HostName.isAddress(host) else { return [host] }
        var domains = [host]
        var rest = host[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            if !rest.isEmpty { domains.append(String(rest)) }
        }
        return domains
    }
}

/// A rule that identifies public suffixes, which are domains such as `co.uk` with subdomains of different owners.
///
/// A server cannot set a cookie for all hosts in a public suffix. Browsers carry a list of about ten thousand public
/// suffixes, which changes every week. The ``builtIn`` rule is much smaller and contains:
///
/// - every domain with one label (`com`, `de`, `localhost`),
/// - the usual second-level labels (`co`, `com`, `org`, `ac`, …) under two-letter domains, such as `co.uk`, `com.au`
///   and `ac.jp`,
/// - some well-known services that give subdomains to their customers, such as `github.io`, `herokuapp.com` and
///   `pages.dev`.
///
/// The rule does not contain the rest of the list, such as `kobe.jp`, `k12.ca.us` and other hosting services. Customers
/// of the same registry could set cookies for each other there. If this matters to you, create a rule from the list.
public struct PublicSuffixRule: Sendable {
    private let rule: @Sendable (String) -> Bool

    /// Creates a rule from a closure.
    ///
    /// - Parameter isPublicSuffix: A closure that returns whether a domain is a public suffix. The domain is in
    ///   lowercase, and a dot at its start is removed. The closure can be called on any thread.
    public init(_ isPublicSuffix: @escaping @Sendable (String) -> Bool) {
        rule = isPublicSuffix
    }

    /// The built-in rule, which contains common public suffixes only.
    public static let builtIn = PublicSuffixRule { domain in
        let labels = domain.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1 else { return true }
        if services.contains(domain) { return true }
        return labels.count == 2 && labels[1].utf8.count == 2 && registries.contains(String(labels[0]))
    }

    /// A rule without public suffixes, for example for your own servers in one domain.
    public static let none = PublicSuffixRule { _ in false }

    /// Returns whether a domain is a public suffix, so that no cookie can be set for all of its hosts.
    public func isPublicSuffix(_ domain: String) -> Bool { rule(domain) }

    private static let registries: Set<String> = [
        "ac", "asso", "biz", "co", "com", "ed", "edu", "firm", "gen", "go", "gob", "gouv", "gov", "govt", "gv", "id",
        "in", "ind", "info", "int", "ltd", "me", "mil", "mod", "name", "ne", "net", "nhs", "nic", "nom", "or", "org",
        "plc", "police", "presse", "pro", "res", "sch", "school", "tm", "web",
    ]

    private static let services: Set<String> = [
        "amplifyapp.com", "appspot.com", "azureedge.net", "azurewebsites.net", "bitbucket.io", "blogspot.com",
        "cloudapp.net", "cloudfront.net", "codeberg.page", "deno.dev", "edgekey.net", "elasticbeanstalk.com",
        "firebaseapp.com", "fly.dev", "github.io", "githubusercontent.com", "gitlab.io", "glitch.me", "herokuapp.com",
        "hf.space", "netlify.app", "ngrok.app", "ngrok.io", "onrender.com", "pages.dev", "replit.app", "repl.co",
        "run.app", "s3.amazonaws.com", "surge.sh", "trycloudflare.com", "vercel.app", "web.app", "workers.dev",
    ]
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
    package mutating func noteChange() -> Bool {
        defer { state = .scheduled }
        return state != .scheduled
    }

    /// Begins a save, and returns whether there are changes to save.
    package mutating func begin() -> Bool {
        defer { state = .clean }
        return state != .clean
    }

    /// Records that a save failed, so that its changes are unsaved unless another save is already scheduled.
    package mutating func fail() {
        if state == .clean { state = .unsaved }
    }
}
