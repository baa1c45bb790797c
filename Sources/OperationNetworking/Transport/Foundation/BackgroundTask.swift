// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(Darwin)
    import Dispatch
    import Foundation
    import OperationCore

    /// A task of a ``BackgroundSession``: the system's download of a response, and what its receiver is told of it.
    ///
    /// Everything but the wishes happens on its queue.
    final class BackgroundTask: NetworkTask {
        private enum State {
            case created
            case spooling(BodySpool)
            case running(URLSessionTask, SpooledFile?)
            /// The response is complete, and is being handed over.
            case telling(Rest)
            case ended
        }

        /// What the receiver is still to be told.
        private struct Rest {
            var head: ResponseHead?
            var data: Data?
            let file: FileHandle?
        }

        private static let portion = 64 << 10

        private let request: NetworkRequest
        private let session: URLSession
        private let reporter: BackgroundReporter
        private let queue = DispatchQueue(label: "OperationKit.BackgroundTask")
        private let wishes = Locked(TaskWishes())
        // Sendable: only used on `queue`.
        private nonisolated(unsafe) var state = State.created
        private nonisolated(unsafe) var receiver: (any NetworkReceiver)?
        private nonisolated(unsafe) var body: SpooledFile?
        private nonisolated(unsafe) var brake = CountedSuspension()

        init(
            _ request: NetworkRequest, _ receiver: any NetworkReceiver, _ session: URLSession,
            _ reporter: BackgroundReporter
        ) {
            self.request = request
            self.receiver = receiver
            self.session = session
            self.reporter = reporter
        }

        func resume() { post(wishes.withLock { $0.resume(at: Self.now) }) }
        func suspend() { post(wishes.withLock { $0.suspend(at: Self.now) }) }
        func cancel() { post(wishes.withLock { $0.cancel() }) }
        func hold() { post(wishes.withLock { $0.hold(at: Self.now) }) }
        func proceed() { post(wishes.withLock { $0.proceed(at: Self.now) }) }

        private static var now: Int64 { URLSessionCarrier.now }

        private func post(_ isNews: Bool) {
            if isNews { queue.async { self.visit() } }
        }

        private func visit() {
            let wishes = wishes.withLock { $0.take() }
            if wishes.isCancelled {
                return end(NetworkError(code: .cancelled, phase: .waiting, message: "The request was cancelled."))
            }
            switch state {
            case .created where wishes.isStarted && !wishes.isSuspended: begin()
            case .running(let task, _): brake.set(wishes.isSuspended, on: task)
            case .telling(let rest): tell(rest)
            case .created, .spooling, .ended: break
            }
        }

        private func begin() {
            switch CarriedBody(request.body) {
            case .ready(.none): run(session.downloadTask(with: URLRequest(carrying: request, adding: [:])), nil)
            case .ready(.file(let region)): upload(region.url, nil)
            case .ready, .toBeWritten:
                state = .spooling(
                    BodySpool(request.body) { result in
                        self.queue.async {
                            switch result {
                            case .success(let file): self.upload(file.url, file)
                            case .failure(let error): self.end(error)
                            }
                        }
                    })
            }
        }

        private func upload(_ url: URL, _ file: SpooledFile?) {
            if case .ended = state { return }
            run(session.uploadTask(with: URLRequest(carrying: request, adding: [:]), fromFile: url), file)
        }

        private func run(_ task: URLSessionTask, _ file: SpooledFile?) {
            reporter.listen(to: task, for: self)
            state = .running(task, file)
            task.resume()
            visit()
        }

        func sent(_ count: Int64) {
            queue.async { [self] in
                guard case .running = state else { return }
                receiver?.task(self, didSend: count, of: request.body.length)
            }
        }

        /// The system is done.
        func ended(_ response: HTTPURLResponse?, _ file: SpooledFile?, _ data: Data?, _ error: NetworkError?) {
            queue.async { [self] in
                guard case .running = state else { return }
                if let error { return end(error) }
                guard let head = response.flatMap({ ResponseHead($0, to: request) }) else {
                    return end(
                        NetworkError(
                            code: .invalidResponse, phase: .receiving, message: "The system gave no response."))
                }
                body = file
                do {
                    let handle = try file.map { try FileHandle(forReadingFrom: $0.url) }
                    let saved = try handle?.seekToEnd() ?? 0
                    try handle?.seek(toOffset: 0)
                    let count = Int64(clamping: saved).addingSaturated(Int64(data?.count ?? 0))
                    if let error = head.shortfall(of: count, for: request) { return end(error) }
                    state = .telling(Rest(head: head, data: data.flatMap { $0.isEmpty ? nil : $0 }, file: handle))
                } catch {
                    return end(Self.unreadable(error))
                }
                visit()
            }
        }

        /// Hands head and body over, until a brake is set.
        private func tell(_ rest: Rest) {
            var rest = rest
            while wishes.withLock({ !$0.isBraked && !$0.isCancelled }) {
                if let head = rest.head {
                    rest.head = nil
                    state = .telling(rest)
                    receiver?.task(self, didReceive: head)
                    continue
                }
                let data: Data?
                do {
                    data = try rest.data ?? rest.file?.read(upToCount: Self.portion)
                } catch {
                    return end(Self.unreadable(error))
                }
                if rest.data != nil {
                    rest.data = nil
                    state = .telling(rest)
                }
                guard let data, !data.isEmpty else { return end(nil) }
                data.withUnsafeBytes { receiver?.task(self, didReceive: $0) }
            }
        }

        private static func unreadable(_ error: any Error) -> NetworkError {
            let reason = error as NSError
            return NetworkError(
                code: .transferFailed, phase: .receiving,
                message: "The system received the response, but the file into which it wrote it cannot be read.",
                underlying: .init(domain: reason.domain, number: reason.code, text: "\(error)"))
        }

        private func end(_ error: NetworkError?) {
            switch state {
            case .ended: return
            case .running(let task, _): task.cancel()
            case .spooling(let spool): spool.stop()
            case .created, .telling: break
            }
            state = .ended
            var error = error
            if !wishes.withLock({ $0.end(asCancelled: false) }) {
                guard wishes.withLock({ $0.end(asCancelled: true) }) else { return }
                error = NetworkError(code: .cancelled, phase: .receiving, message: "The request was cancelled.")
            }
            error?.request = request.summary
            let receiver = receiver
            self.receiver = nil
            body = nil
            receiver?.task(self, didEndWith: error)
        }
    }
#endif
