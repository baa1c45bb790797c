// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking

/// What all requests of a run have in common: session, fields, time limits, retry.
final class Client: Sendable {
    let settings: Settings
    let session: ExchangeSession
    /// Where all handlers are called, one after another.
    let callbacks = DispatchQueue(label: "opget")
    private let hosts: HostCategories
    private let retry: Retry

    init(_ settings: Settings) {
        self.settings = settings
        hosts = HostCategories(limit: settings.perHost)
        var transport = Self.transport(settings)
        if let rate = settings.limitRate { transport = LimitedSession(over: transport, bytesPerSecond: rate) }
        session = ExchangeSession(over: transport)
        // A server that is down is not asked without end, however many files are wanted of it.
        let reserve = max(20, settings.retries * min(settings.jobs, 20))
        var retry = Retry(budget: RetryBudget(reserve: reserve, refillPerSecond: 2))
        retry.policy.maximumAttempts = settings.retries + 1
        retry.policy.window = .seconds(600)
        retry.policy.rules.append(
            .failure(SegmentOperation.wholeFile, because: "One of several servers or proxies does not support ranges."))
        self.retry = retry
    }

    /// What came so much further is a new beginning, as for the library's own downloads.
    static let leastProgress: Int64 = 64 << 10

    /// Whether a failure is one that would have been followed by another attempt if there had been one left.
    func ranOutOfAttempts(_ error: NetworkError) -> Bool {
        error.retryEnd == .attemptsUsedUp || error.retryEnd == .windowOver
    }

    private static func transport(_ settings: Settings) -> any NetworkSession {
        #if OPERATIONKIT_LIBCURL
            if CurlSession.problem == nil {
                var configuration = CurlSession.Configuration()
                configuration.maximumConnectionsPerHost = settings.perHost
                return CurlSession(configuration: configuration)
            }
        #endif
        return DefaultNetworkSession.platformTransport
    }

    /// Makes the request for a URL, or says what is wrong with it.
    static func request(
        _ method: String = "GET", _ url: URL, _ settings: Settings
    ) throws(NetworkError) -> NetworkRequest {
        var headers: HeaderFields = ["User-Agent": settings.userAgent, "Accept": "*/*"]
        for line in settings.headers {
            if line.name.lowercased() == "user-agent" || line.name.lowercased() == "accept" {
                headers[line.name] = line.value
            } else {
                headers.add(line.name, line.value)
            }
        }
        var options = TransferOptions()
        options.timeouts = TransferTimeouts(
            connect: settings.connectTimeout, firstByte: settings.timeout, idle: settings.timeout)
        return try NetworkRequest(method, url: url, headers: headers, options: options)
    }

    /// What stands for the host of a file.
    func category(of item: DownloadItem) -> OperationCategory { hosts.category(of: item.url) }

    /// Sets an operation up as all are.
    func prepare(_ operation: some AnyNetworkOperation, for item: DownloadItem) {
        operation.name = item.shownURL
        operation.retry = settings.retries > 0 ? retry : nil
        operation.offline = settings.waitsForNetwork ? .standard : nil
        operation.categories = [category(of: item)]
        operation.progressPacing = ProgressPacing(smallestStep: 64 << 10)
    }
}
