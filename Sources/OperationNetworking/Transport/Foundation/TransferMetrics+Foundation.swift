// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if canImport(Darwin)
    import Foundation

    extension TransferMetrics {
        /// What Foundation measured of the last request of a task.
        init(_ metrics: URLSessionTaskMetrics) {
            self.init()
            guard let last = metrics.transactionMetrics.last else { return }
            let start = metrics.taskInterval.start
            func moment(_ date: Date?) -> Duration? { date.map { .seconds($0.timeIntervalSince(start)) } }
            isConnectionReused = last.isReusedConnection
            if !isConnectionReused {
                nameResolved = moment(last.domainLookupEndDate)
                connected = moment(last.connectEndDate)
                secured = moment(last.secureConnectionEndDate)
            }
            requestBegan = moment(last.requestStartDate)
            version =
                switch last.networkProtocolName {
                case "http/1.0": .http1_0
                case "http/1.1": .http1_1
                case "h2": .http2
                default: nil
                }
            if let address = last.remoteAddress {
                let port = last.remotePort.map { ":\($0)" } ?? ""
                remoteAddress = address.contains(":") ? "[\(address)]\(port)" : "\(address)\(port)"
            }
            bodyBytesSent = last.countOfRequestBodyBytesSent
            bodyBytesReceived = last.countOfResponseBodyBytesReceived
            headerBytesReceived = last.countOfResponseHeaderBytesReceived
        }
    }
#endif
