// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The session that `createTask(with:using:)` gets: tasks made with it alone tell the operation what comes.
final class BoundSession: NetworkSession {
    let session: any NetworkSession
    private let receiver: AttemptReceiver

    init(_ session: any NetworkSession, _ receiver: AttemptReceiver) {
        self.session = session
        self.receiver = receiver
    }

    /// Whether its attempt is over.
    ///
    /// A hook that kept the session for a later attempt gets tasks that are not bound.
    var isOutdated: Bool { receiver.isOver }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        TaskCreation.current?.noteBoundTask()
        return session.makeTask(with: request, receiver: receiver)
    }

    func makeBoundTask(with request: NetworkRequest) -> any NetworkTask {
        TaskCreation.current?.noteBoundTask()
        return session.makeTask(with: request, receiver: receiver)
    }
}

extension NetworkSession {
    /// The session with what is done above it, if it is one of Foundation's: of such one expects that it follows redirects.
    var withPolicy: any NetworkSession { self is URLSession ? ExchangeSession(over: self) : self }

    /// Makes a task whose response goes to the operation to which the session was handed.
    ///
    /// It is for ``NetworkOperation/createTask(with:using:)->NetworkTask``, which gets a session that is bound to its
    /// operation. The hook may also return a task that it made in this way with another session, as long as it does not
    /// call that task itself. The response to any other task that was made in this way is dropped.
    public func makeTask(with request: NetworkRequest) -> any NetworkTask {
        guard let bound = self as? BoundSession else { return UnboundTask(self, request) }
        return bound.isOutdated ? UnboundTask(bound.session, request) : bound.makeBoundTask(with: request)
    }
}
