// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
    /// Makes a task whose response goes to the operation to which the session was handed.
    ///
    /// It is for ``NetworkOperation/createTask(with:using:)``, which gets a session that is bound to its operation. Tasks
    /// that any other session makes in this way answer to nobody.
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
