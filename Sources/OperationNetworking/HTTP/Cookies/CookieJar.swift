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
        var shelf: CookieStore
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
        var shelf = CookieStore(limits: limits, suffixes: suffixes)
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
        state = Locked(State(shelf: CookieStore(limits: limits, suffixes: suffixes)))
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
        let offers = CookieStore.offers(fields, limits: limits, suffixes: suffixes, now: moment)
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

    private func change(_ body: (inout CookieStore) -> Bool) {
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

/// Which cookies belong to which requests (RFC 6265bis, sections 5.1.3 and 5.1.4).
package enum CookieMatching {
    /// Whether a host is a domain, or lies in it.
    package static func isHost(_ host: String, in domain: String) -> Bool {
        if host == domain { return true }
        return !domain.isEmpty && host.hasSuffix("." + domain) && !HostName.isAddress(host)
    }

    /// Whether a path is another one, or lies under it.
    package static func isPath(_ path: String, under prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        return path.utf8.count == prefix.utf8.count || prefix.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(prefix.utf8.count).first == UInt8(ascii: "/")
    }

    /// The path of a cookie that names none, from the path of the request to which it is an answer.
    package static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let last = path.utf8.lastIndex(of: UInt8(ascii: "/")), last != path.startIndex else {
            return "/"
        }
        return String(path[..<last])
    }

    /// The host, and the domains in which it lies.
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

/// Which domains belong to nobody alone, so that no cookie may be set for all hosts in them.
///
/// Browsers carry a list of some ten thousand such domains, which changes each week. The ``builtIn`` rule is a small one
/// of our own instead, and knows:
///
/// - every domain of one label (`com`, `de`, `localhost`),
/// - the usual second labels (`co`, `com`, `org`, `ac`, …) below domains of two letters: `co.uk`, `com.au`, `ac.jp`,
/// - some well-known services that give subdomains to strangers: `github.io`, `herokuapp.com`, `pages.dev`, …
///
/// It does not know the rest of the list: `kobe.jp`, `k12.ca.us`, or a hosting service that it does not name. There two
/// customers of one registry could set cookies for each other. Where that matters give a rule of your own, made from
/// the list.
public struct PublicSuffixRule: Sendable {
    private let rule: @Sendable (String) -> Bool

    /// Makes a rule of your own.
    ///
    /// - Parameter isPublicSuffix: Whether a domain, in lower case and without a dot at its ends, belongs to nobody alone.
    public init(_ isPublicSuffix: @escaping @Sendable (String) -> Bool) {
        rule = isPublicSuffix
    }

    /// The small rule described above.
    public static let builtIn = PublicSuffixRule { domain in
        let labels = domain.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1 else { return true }
        if services.contains(domain) { return true }
        return labels.count == 2 && labels[1].utf8.count == 2 && registries.contains(String(labels[0]))
    }

    /// No domain is refused, as for servers of one's own in one domain.
    public static let none = PublicSuffixRule { _ in false }

    /// Whether no cookie may be set for all hosts of the domain.
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

/// Whether there is something to save, and whether somebody is on the way to do it.
package struct SaveTurn: Equatable, Sendable {
    private enum State: Equatable {
        case clean
        /// Changed, and a turn was scheduled.
        case scheduled
        /// Changed, and nobody is on the way: the last turn failed.
        case unsaved
    }

    private var state = State.clean

    package init() {}

    /// Something changed: returns whether a turn is to be scheduled.
    package mutating func noteChange() -> Bool {
        defer { state = .scheduled }
        return state != .scheduled
    }

    /// A turn begins: returns whether there is something to save.
    package mutating func begin() -> Bool {
        defer { state = .clean }
        return state != .clean
    }

    /// The turn failed; what it was to save is unsaved, unless another turn is on the way already.
    package mutating func fail() {
        if state == .clean { state = .unsaved }
    }
}
