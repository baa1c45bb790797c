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

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        session.makeTask(with: request, receiver: receiver)
    }

    func makeBoundTask(with request: NetworkRequest) -> any NetworkTask {
        session.makeTask(with: request, receiver: receiver)
    }
}

extension NetworkSession {
    /// The session with what is done above it, if it is one of Foundation's: of such one expects that it follows redirects.
    var withPolicy: any NetworkSession { self is URLSession ? ExchangeSession(over: self) : self }

    /// Makes a task whose response goes to the operation to which the session was handed.
    ///
    /// It is for ``NetworkOperation/createTask(with:using:)->NetworkTask``, which gets a session that is bound to its
    /// operation. Tasks that any other session makes in this way answer to nobody.
    public func makeTask(with request: NetworkRequest) -> any NetworkTask {
        (self as? BoundSession)?.makeBoundTask(with: request)
            ?? makeTask(with: request, receiver: SilentReceiver())
    }
}

/// Lets everything go by.
private final class SilentReceiver: NetworkReceiver {
    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {}
}
