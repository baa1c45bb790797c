// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The cookies of a jar, which are stored, sent and removed as RFC 6265bis specifies (sections 5.7 and 5.8).
///
/// The value has no clock, so each call gets the current date.
package struct CookieMachine: Sendable {
    /// A cookie and its position in the order in which cookies were set.
    private typealias Entry = (cookie: Cookie, serial: UInt64)

    package let limits: CookieLimits
    private var entries: [String: [Entry]] = [:]
    private var lastSerial: UInt64 = 0
    package private(set) var count = 0

    package init(limits: CookieLimits = CookieLimits()) {
        self.limits = limits
    }

    /// All cookies, in the order in which they were set.
    package var cookies: [Cookie] {
        entries.values.joined().sorted { $0.serial < $1.serial }.map(\.cookie)
    }

    /// A cookie that a server asks to set, and whether the domain of the cookie is a public suffix.
    package typealias Offer = (asked: SetCookie, isForPublicSuffix: Bool)

    /// Returns the cookies that a response asks to set.
    ///
    /// This function calls the user's rule, so it is static and runs outside of the jar's lock.
    package static func offers(
        _ fields: [String], limits: CookieLimits, suffixes: SuffixRule, now: Date
    ) -> [Offer] {
        fields.prefix(limits.perResponse).compactMap { SetCookie($0, now: now, sizeLimit: limits.size) }.map { asked in
            // Other domains are rejected without asking the rule.
            let isNamed =
                !asked.domain.isEmpty && !asked.domain.hasSuffix(".") && asked.domain.utf8.allSatisfy { $0 < 0x80 }
            return (asked, isNamed && suffixes(asked.domain))
        }
    }

    /// Stores the cookies of a response, and returns whether anything changed.
    package mutating func receive(_ offers: [Offer], from address: WebAddress, now: Date) -> Bool {
        var hasChanged = false
        for offer in offers {
            guard let cookie = admit(offer, from: address, now: now) else { continue }
            hasChanged = put(cookie, now: now) || hasChanged
        }
        return hasChanged
    }

    /// Returns the value of the `Cookie` header of a request, or `nil` if no cookie is sent with it.
    package mutating func header(for address: WebAddress, now: Date) -> String? {
        var found: [Entry] = []
        for domain in Self.domains(of: address.origin.host) {
            guard var group = entries[domain] else { continue }
            for index in group.indices where matches(group[index].cookie, address, now: now) {
                group[index].cookie.lastUsed = now
                found.append(group[index])
            }
            entries[domain] = group
        }
        guard !found.isEmpty else { return nil }
        found.sort { one, other in
            let (length, otherLength) = (one.cookie.path.utf8.count, other.cookie.path.utf8.count)
            return length == otherLength ? one.serial < other.serial : length > otherLength
        }
        return found.map(\.cookie.pair).joined(separator: "; ")
    }

    /// Stores a cookie in place of the one with the same identity, and returns whether anything changed.
    ///
    /// If the cookie has expired, it only removes the other one.
    @discardableResult
    package mutating func put(_ cookie: Cookie, now: Date) -> Bool {
        guard cookie.isWritable else { return false }
        var cookie = cookie
        // A date that is not finite has no JSON, so the storage could save no cookie at all.
        if let end = cookie.expires, !end.timeIntervalSince1970.isFinite {
            cookie.expires = end.timeIntervalSince1970 > 0 ? .distantFuture : .distantPast
        }
        lastSerial += 1
        var serial = lastSerial
        var hasChanged = false
        var group = entries[cookie.domain] ?? []
        if let index = group.firstIndex(where: { $0.cookie.isSame(as: cookie) }) {
            cookie.created = group[index].cookie.created
            serial = group[index].serial
            group.remove(at: index)
            count -= 1
            hasChanged = true
        }
        if !cookie.isExpired(at: now) {
            group.append((cookie, serial))
            count += 1
            hasChanged = true
        }
        entries[cookie.domain] = group.isEmpty ? nil : group
        if group.count > limits.perDomain { evictExcess(of: cookie.domain, now: now) }
        if count > limits.total { evictExcess(now: now) }
        return hasChanged
    }

    /// Removes the cookies for which a closure returns `true`, and returns whether there were any.
    @discardableResult
    package mutating func remove(where rule: (Cookie) -> Bool) -> Bool {
        let before = count
        entries = entries.mapValues { $0.filter { !rule($0.cookie) } }.filter { !$0.value.isEmpty }
        count = entries.values.reduce(0) { $0 + $1.count }
        return count != before
    }

    private func matches(_ cookie: Cookie, _ address: WebAddress, now: Date) -> Bool {
        let host = address.origin.host
        return !cookie.isExpired(at: now)
            && (cookie.isHostOnly ? cookie.domain == host : Self.isHost(host, in: cookie.domain))
            && Self.isPath(address.path, under: cookie.path)
            && (!cookie.isSecure || address.origin.isSecure)
    }

    /// Returns the cookie to store, or `nil` if the server may not set it.
    private func admit(_ offer: Offer, from address: WebAddress, now: Date) -> Cookie? {
        let (host, asked) = (address.origin.host, offer.asked)
        guard let domain = admitDomain(offer, host: host) else { return nil }
        var cookie = Cookie(name: asked.name, value: asked.value, domain: domain.isEmpty ? host : domain)
        cookie.isHostOnly = domain.isEmpty
        cookie.path = asked.path ?? Self.defaultPath(of: address.path)
        cookie.expires = asked.expires
        cookie.isSecure = asked.isSecure
        cookie.isHTTPOnly = asked.isHTTPOnly
        cookie.sameSite = asked.sameSite
        cookie.created = now
        cookie.lastUsed = now
        guard address.origin.isSecure || !(cookie.isSecure || shadowsSecure(cookie, now: now)) else { return nil }
        guard cookie.isSecure || cookie.sameSite != Cookie.SameSite.none else { return nil }
        return keepsPrefixPromise(cookie, namesPath: asked.path != nil) ? cookie : nil
    }

    /// Returns the domain of a cookie, an empty string for the host alone, or `nil` if the server may not name the
    /// domain.
    private func admitDomain(_ offer: Offer, host: String) -> String? {
        let domain = offer.asked.domain
        guard !domain.isEmpty else { return "" }
        // "com." is as public as "com", but rules do not know it. A host with a dot at its end can set cookies for
        // itself only.
        guard domain.utf8.allSatisfy({ $0 < 0x80 }), !domain.hasSuffix(".") else { return nil }
        if HostName.isAddress(host) || offer.isForPublicSuffix { return domain == host ? "" : nil }
        return Self.isHost(host, in: domain) ? domain : nil
    }

    /// Returns whether a cookie from an unencrypted connection would replace or hide a secure cookie.
    private func shadowsSecure(_ cookie: Cookie, now: Date) -> Bool {
        entries.contains { domain, group in
            guard Self.isHost(domain, in: cookie.domain) || Self.isHost(cookie.domain, in: domain)
            else { return false }
            return group.contains { entry in
                entry.cookie.isSecure && !entry.cookie.isExpired(at: now) && entry.cookie.name == cookie.name
                    && Self.isPath(cookie.path, under: entry.cookie.path)
            }
        }
    }

    /// Returns whether a cookie meets the requirements of its name prefix.
    ///
    /// A value without a name must not begin with such a prefix.
    private func keepsPrefixPromise(_ cookie: Cookie, namesPath: Bool) -> Bool {
        let start = (cookie.name.isEmpty ? cookie.value : cookie.name).asciiLowercased
        let isHostPromise = start.hasPrefix("__host-")
        guard isHostPromise || start.hasPrefix("__secure-") else { return true }
        guard !cookie.name.isEmpty, cookie.isSecure else { return false }
        return !isHostPromise || (cookie.isHostOnly && namesPath && cookie.path == "/")
    }

    /// Removes the surplus cookies of one domain: expired cookies, then cookies that are not secure, then others.
    ///
    /// Among equals, the cookies that were not used for the longest time are removed first.
    private mutating func evictExcess(of domain: String, now: Date) {
        guard var group = entries[domain] else { return }
        count -= group.count
        group.removeAll { $0.cookie.isExpired(at: now) }
        while group.count > limits.perDomain {
            let candidates = group.indices.filter { !group[$0].cookie.isSecure }
            let oldest = (candidates.isEmpty ? Array(group.indices) : candidates).min {
                Self.isOlder(group[$0], than: group[$1])
            }
            guard let oldest else { break }
            group.remove(at: oldest)
        }
        count += group.count
        entries[domain] = group.isEmpty ? nil : group
    }

    private mutating func evictExcess(now: Date) {
        remove { $0.isExpired(at: now) }
        while count > limits.total {
            let oldest = entries.values.joined().min { Self.isOlder($0, than: $1) }
            guard let oldest,
                let index = entries[oldest.cookie.domain]?.firstIndex(where: { $0.serial == oldest.serial })
            else { return }
            entries[oldest.cookie.domain]?.remove(at: index)
            if entries[oldest.cookie.domain]?.isEmpty == true { entries[oldest.cookie.domain] = nil }
            count -= 1
        }
    }

    private static func isOlder(_ one: Entry, than other: Entry) -> Bool {
        (one.cookie.lastUsed, one.serial) < (other.cookie.lastUsed, other.serial)
    }
}

extension Cookie {
    fileprivate func isSame(as other: Cookie) -> Bool {
        name == other.name && domain == other.domain && isHostOnly == other.isHostOnly && path == other.path
    }
}

/// The rules that match cookies to requests (RFC 6265bis, sections 5.1.3 and 5.1.4).
extension CookieMachine {
    /// Returns whether a host is equal to a domain or belongs to it.
    private static func isHost(_ host: String, in domain: String) -> Bool {
        if host == domain { return true }
        return !domain.isEmpty && host.hasSuffix("." + domain) && !HostName.isAddress(host)
    }

    /// Returns whether a path is equal to another path or lies under it.
    private static func isPath(_ path: String, under prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        return path.utf8.count == prefix.utf8.count || prefix.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(prefix.utf8.count).first == UInt8(ascii: "/")
    }

    /// Returns the default path of a cookie, which is derived from the path of the request.
    private static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let last = path.utf8.lastIndex(of: UInt8(ascii: "/")), last != path.startIndex else {
            return "/"
        }
        return String(path[..<last])
    }

    /// Returns a host and the domains to which it belongs.
    private static func domains(of host: String) -> [String] {
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

// The public suffixes, which are domains such as `co.uk` whose subdomains have different owners.
extension CookieMachine {
    /// A closure that returns whether a domain is a public suffix, so that a server cannot set a cookie for all of its
    /// hosts.
    ///
    /// The domain is in lowercase and does not begin with a dot. A jar can call the closure on any thread.
    package typealias SuffixRule = @Sendable (String) -> Bool

    /// The built-in rule, which contains only common public suffixes.
    package static let isCommonSuffix: SuffixRule = { domain in
        let labels = domain.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1 else { return true }
        if services.contains(domain) { return true }
        return labels.count == 2 && labels[1].utf8.count == 2 && registries.contains(String(labels[0]))
    }

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
