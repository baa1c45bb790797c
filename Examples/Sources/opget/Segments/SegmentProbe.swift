// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A plan for a download in segments, with its destination, metadata and request.
struct SegmentedPlan: Sendable {
    let place: URL
    let metadata: SegmentMetadata
    let request: NetworkRequest
    /// A Boolean value that indicates whether the request uses a different URL than the user specified.
    let isRedirected: Bool
}

/// A probe that determines whether a file can be downloaded in segments, and the URL after redirects.
struct SegmentProbe: Sendable {
    enum Answer: Sendable {
        case pieces(SegmentedPlan)
        /// The file cannot be downloaded in segments, for a reason that is nil if the user does not need to know the
        /// reason.
        case single(String?)
        case cancelled
    }

    let item: DownloadItem
    let client: Client
    let reporter: Reporter
    let place: @Sendable (ResponseHead) -> URL

    private var settings: Settings { client.settings }

    func ask() async throws(FileFailure) -> Answer {
        let request: NetworkRequest
        do throws(NetworkError) {
            // The requests for segments use the same encoding, because the length of a compressed response is unknown.
            request = try Client.request("HEAD", item.url, settings).with("Accept-Encoding", "identity")
        } catch {
            throw FileFailure(error)
        }
        let probe = NetworkDataOperation<Bool>(request: request, urlSession: client.session) { _, _ in true }
        probe.callbackQueue = client.callbacks
        probe.responseRules.contentTypes = .any
        client.prepare(probe, for: item)
        probe.retryHandler = { [item, reporter] in reporter.retried(item, $0) }
        switch await withTaskCancellationHandler(
            operation: { () async in await ended(probe) }, onCancel: { probe.cancel() })
        {
        case .success: break
        case .failure(let error):
            guard error.code == .unacceptableStatus, let status = error.status else { throw FileFailure(error) }
            // A server that does not support HEAD might still have the file. However, if the server is only overloaded,
            // the existing bytes are kept.
            let mayPass = status == 429 || status >= 500 && status != 501
            let names = SegmentNames(for: place(ResponseHead(url: item.url, status: 200)))
            if mayPass, names.exist { throw FileFailure(error) }
            return .single(status == 405 || status == 501 ? "the server does not support HEAD requests" : nil)
        case .cancelled(let cause):
            if Task.isCancelled { return .cancelled }
            throw FileFailure(.failure, "\(cause.code)", cause.message)
        }
        guard let head = probe.responseHead else { return .single("the server does not support HEAD requests") }
        return try answer(to: head)
    }

    private func ended<Value>(_ operation: NetworkDataOperation<Value>) async -> OperationOutcome<Value, NetworkError> {
        operation.start()
        return await operation.finalOutcome
    }

    private func answer(to head: ResponseHead) throws(FileFailure) -> Answer {
        guard head.status == 200 else { return .single("the server responds to HEAD with status \(head.status)") }
        guard !head.headers.contains("Content-Encoding") else { return .single("the server compresses the file") }
        guard let total = head.expectedLength else {
            return .single(
                "the server does not report the length of the file")
        }
        guard head.headers.values("Accept-Ranges").contains(where: { $0.lowercased().contains("bytes") }) else {
            return .single("the server does not support ranges")
        }
        guard let validator = SegmentValidator(head.headers) else {
            return .single("the server does not identify the version of the file")
        }
        let place = place(head)
        let ranges = SegmentPlan.ranges(total: total, count: settings.segments)
        // A user does not need to know the reason for a small file.
        guard total > 0, ranges.count > 1 || SegmentNames(for: place).exist else { return .single(nil) }
        let source = SegmentMetadata.hash(item.url.absoluteString.utf8)
        let spans = ranges.map { SegmentMetadata.Span(start: $0.lowerBound, end: $0.upperBound) }
        let metadata = SegmentMetadata(source: source, validator: validator, total: total, spans: spans)
        guard metadata.bytes([]) != nil else { return .single("the version identifier of the file is too long") }
        do throws(NetworkError) {
            // The headers already contain the user name and password of the URL, and the URL of the response does not.
            let first = try Client.request("GET", item.url, settings)
            let request = try NetworkRequest("GET", url: head.url, headers: first.headers, options: first.options)
                .without(secretsOf: first.url)
            let isRedirected = head.url.absoluteString != first.url.absoluteString
            return .pieces(
                SegmentedPlan(place: place, metadata: metadata, request: request, isRedirected: isRedirected))
        } catch {
            throw FileFailure(error)
        }
    }
}

extension NetworkRequest {
    fileprivate func with(_ name: String, _ value: String) throws(NetworkError) -> NetworkRequest {
        var headers = headers
        headers[name] = value
        return try NetworkRequest(method, url: url, headers: headers, options: options)
    }

    /// Returns the request without headers that belong only to the origin of another URL, as for a redirect.
    fileprivate func without(secretsOf other: URL) throws(NetworkError) -> NetworkRequest {
        guard WebOrigin(url) != WebOrigin(other) else { return self }
        let secrets: Set = ["authorization", "cookie", "cookie2", "proxy-authorization", "origin", "referer"]
        var headers = headers
        for header in headers
        where secrets.contains(header.name.lowercased()) || LogRedaction.secrets.hides(header) {
            headers.remove(header.name)
        }
        return try NetworkRequest(method, url: url, headers: headers, options: options)
    }
}
