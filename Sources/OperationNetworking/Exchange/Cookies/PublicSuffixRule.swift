// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
