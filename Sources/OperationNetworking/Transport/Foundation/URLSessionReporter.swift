// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What Foundation tells of a task.
enum URLSessionEvent: Sendable {
    case response(URLResponse)
    case bytes(Data)
    case sent(Int64)
    /// It asks whether to follow a redirect; the closure says no.
    case redirect(refuse: @Sendable () -> Void)
    case refusedChallenge
    case measured(TransferMetrics)
    /// The response that follows is the rest of a response that an earlier task had received in part.
    case continued
    /// The body is complete.
    case file(SpooledFile)
    /// The request is to be sent again from its beginning.
    case startOver
    case end((any Error)?)
}

/// The delegate of Foundation's tasks: hands on what it is told, and answers what it is asked with no.
///
/// On Apple's systems each task has one of its own, on Linux each private session.
final class URLSessionReporter: NSObject, URLSessionDataDelegate, Sendable {
    typealias Tell = @Sendable (URLSessionEvent) -> Void

    private let listeners = Locked<[Int: Tell]>([:])

    func listen(to task: URLSessionTask, _ tell: @escaping Tell) {
        listeners.withLock { $0[task.taskIdentifier] = tell }
    }

    private func tell(_ task: URLSessionTask, _ event: URLSessionEvent) {
        listeners.withLock { $0[task.taskIdentifier] }?(event)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        tell(dataTask, .response(response))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        tell(dataTask, .bytes(data))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        tell(task, .sent(totalBytesSent))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // On Linux an answer after a cancel ends the process: so it is given where tasks are cancelled, too.
        #if canImport(FoundationNetworking)
            tell(task, .redirect { completionHandler(nil) })
        #else
            completionHandler(nil)
        #endif
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
            // Any other answer leads to a task without an end.
            tell(task, .refusedChallenge)
            completionHandler(.cancelAuthenticationChallenge, nil)
        #else
            let isAboutUser =
                [
                    NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest,
                    NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
                    NSURLAuthenticationMethodDefault,
                ].contains(challenge.protectionSpace.authenticationMethod)
            // Who the user is, is for the layer above; whom to trust is for the session's own delegate, or the system.
            guard !isAboutUser else { return completionHandler(.rejectProtectionSpace, nil) }
            askDelegate(of: session, task, challenge, completionHandler)
        #endif
    }

    #if canImport(Darwin)
        /// The system asks the delegate of a task and no other, and would leave out the pins and certificates of the session's
        /// own: it is asked as without us, first for the session and then for the task.
        private func askDelegate(
            of session: URLSession, _ task: URLSessionTask, _ challenge: URLAuthenticationChallenge,
            _ answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let delegate = session.delegate
            if delegate?.urlSession?(session, didReceive: challenge, completionHandler: answer) != nil { return }
            let ofTasks = delegate as? any URLSessionTaskDelegate
            if ofTasks?.urlSession?(session, task: task, didReceive: challenge, completionHandler: answer) != nil {
                return
            }
            answer(.performDefaultHandling, nil)
        }
    #endif

    #if canImport(Darwin)
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
        ) {
            tell(task, .response(response))
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
        ) {
            tell(task, .measured(TransferMetrics(metrics)))
        }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let tell = listeners.withLock { $0.removeValue(forKey: task.taskIdentifier) }
        tell?(.end(error))
    }
}
