// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Keeps cookies as long as the program runs.
///
/// For a jar that has no storage at all give none; this one is for two jars after another, and for tests.
public final class MemoryCookieStorage: CookieStorage {
    private let cookies: Locked<[Cookie]>

    /// Makes a storage that holds these cookies.
    public init(_ cookies: [Cookie] = []) {
        self.cookies = Locked(cookies)
    }

    /// The cookies that were saved last.
    public func load() -> [Cookie] { cookies.withLock { $0 } }

    /// Keeps the cookies.
    public func save(_ cookies: [Cookie]) { self.cookies.withLock { $0 = cookies } }
}
