// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// The session that operations use to which no other is given: that of the platform, until you set another.
///
/// `urlSession: .shared` means this one. On Linux it follows redirects and keeps limits (``ExchangeSession``) over a
/// ``CurlSession``.
public final class DefaultNetworkSession: NetworkSession {
    /// The one there is.
    public static let standard = DefaultNetworkSession()

    private let chosen = Locked<(any NetworkSession)?>(nil)
    private let platform: any NetworkSession

    private init() {
        platform = ExchangeSession(over: Self.transport)
    }

    /// The session that does the work: set it once, when the program starts; nil brings the platform's back.
    public var session: (any NetworkSession)? {
        get { chosen.withLock { $0 } ?? platform }
        set {
            var session = newValue
            chosen.withLock { swap(&$0, &session) }
        }
    }

    /// Makes a task with the session that is set now.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        (session ?? platform).makeTask(with: request, receiver: receiver)
    }

    private static var transport: any NetworkSession {
        #if os(Linux)
            CurlSession.shared
        #else
            UnavailableSession()
        #endif
    }
}

extension NetworkSession where Self == DefaultNetworkSession {
    /// The default session of the platform, or the one that took its place: see ``DefaultNetworkSession``.
    public static var shared: DefaultNetworkSession { .standard }
}

#if !os(Linux)
    /// Stands where a platform has no session yet: its tasks say so.
    final class UnavailableSession: NetworkSession {
        func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
            UnavailableTask(receiver)
        }
    }

    private final class UnavailableTask: NetworkTask {
        private let receiver: Locked<(any NetworkReceiver)?>

        init(_ receiver: any NetworkReceiver) {
            self.receiver = Locked(receiver)
        }

        func resume() { end() }
        func suspend() {}
        func cancel() { end() }
        func hold() {}
        func proceed() {}

        private func end() {
            let receiver = receiver.withLock { exchange(&$0, with: nil) }
            let error = NetworkError(
                code: .sessionUnavailable, phase: .waiting,
                message: "There is no default session on this platform. Set DefaultNetworkSession.standard.session.")
            receiver?.task(self, didEndWith: error)
        }
    }
#endif
