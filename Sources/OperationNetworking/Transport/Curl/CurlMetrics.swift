// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    /// What libcurl measured.
    enum CurlMetrics {
        static func collect(_ transfer: CurlTransfer, _ task: CurlTask, now: Int64) -> TransferMetrics {
            let handle = transfer.handle
            var metrics = TransferMetrics()
            // libcurl counts from the moment at which it got the request.
            let begun = transfer.soughtAt - task.confined.resumedAt
            func moment(_ info: Int) -> Duration? {
                let microseconds = handle.size(info)
                return microseconds > 0 ? .nanoseconds(begun + microseconds * 1000) : nil
            }
            metrics.slotGranted = .nanoseconds(transfer.beganAt - task.confined.resumedAt)
            metrics.requestBegan = moment(OKCurlInfoRequestTime)
            metrics.firstByte = moment(OKCurlInfoFirstByteTime)
            metrics.ended = .nanoseconds(now - task.confined.resumedAt)
            metrics.paused = .nanoseconds(transfer.deadlines.paused)
            metrics.isConnectionReused = handle.long(OKCurlInfoNewConnections) == 0 && metrics.requestBegan != nil
            if !metrics.isConnectionReused {
                metrics.nameResolved = moment(OKCurlInfoNameTime)
                metrics.connected = moment(OKCurlInfoConnectTime)
                metrics.secured = moment(OKCurlInfoSecureTime)
            }
            switch handle.long(OKCurlInfoHTTPVersion) {
            case 1: metrics.version = .http1_0
            case 2: metrics.version = .http1_1
            case 3: metrics.version = .http2
            default: break
            }
            if let address = handle.string(OKCurlInfoRemoteAddress), !address.isEmpty {
                let port = handle.long(OKCurlInfoRemotePort)
                metrics.remoteAddress = address.utf8.contains(0x3A) ? "[\(address)]:\(port)" : "\(address):\(port)"
            }
            metrics.bodyBytesSent = handle.size(OKCurlInfoBytesSent)
            metrics.bodyBytesReceived = handle.size(OKCurlInfoBytesReceived)
            metrics.headerBytesReceived = Int64(transfer.headerCount)
            return metrics
        }
    }
#endif
