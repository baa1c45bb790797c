// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    /// A multi handle of libcurl, which holds all transfers of a session and its connections.
    ///
    /// The handle tells its loop which sockets to watch, and when it wants to be called.
    final class CurlMulti {
        private let multi: OpaquePointer

        /// Creates a multi handle, or returns `nil` if there is no memory or descriptor left.
        init?(_ configuration: CurlSession.Configuration, for loop: CurlLoop) {
            guard let multi = OKCurlMultiMake() else { return nil }
            self.multi = multi
            let context = UnsafeRawPointer(Unmanaged.passUnretained(loop).toOpaque())
            _ = OKCurlMultiSetPointer(multi, Int32(OKCurlMultiOptionSocketData), context)
            _ = OKCurlMultiSetPointer(multi, Int32(OKCurlMultiOptionTimerData), context)
            // The value 2 allows several requests over one connection with HTTP/2.
            _ = OKCurlMultiSetLong(multi, Int32(OKCurlMultiOptionMultiplexing), 2)
            for (option, value) in [
                (OKCurlMultiOptionMaximumIdleConnections, configuration.maximumConnections),
                (OKCurlMultiOptionMaximumStreams, configuration.maximumStreamsPerConnection),
            ] { _ = OKCurlMultiSetLong(multi, Int32(option), max(value, 1)) }
            limitConnections(configuration)
            _ = OKCurlMultiSetSocket(multi) { _, socket, interest, context, _ in
                CurlLoop.of(context)?.sockets.want(socket, Int(interest))
                return 0
            }
            _ = OKCurlMultiSetTimer(multi) { _, milliseconds, context in
                CurlLoop.of(context)?.setCurlTimer(milliseconds)
                return 0
            }
        }

        deinit { _ = OKCurl.multiCleanup(multi) }

        /// Limits the number of connections, with some more for transfers that go ahead of all others.
        func limitConnections(_ configuration: CurlSession.Configuration, beyond more: Int = 0) {
            for (option, value) in [
                (OKCurlMultiOptionMaximumConnections, configuration.maximumConnections),
                (OKCurlMultiOptionMaximumHostConnections, configuration.maximumConnectionsPerHost),
            ] {
                let (limit, overflow) = max(value, 1).addingReportingOverflow(more)
                _ = OKCurlMultiSetLong(multi, Int32(option), overflow ? .max : limit)
            }
        }

        /// Adds a transfer, and returns the error of libcurl if it refuses.
        func add(_ handle: CurlHandle) -> NetworkError.Underlying? {
            let code = OKCurl.multiAdd(multi, handle.easy)
            guard code != 0 else { return nil }
            let text = OKCurl.multiErrorText(code).map { String(cString: $0) } ?? ""
            return .init(domain: "libcurl multi", number: Int(code), text: text)
        }

        /// Removes a transfer, if the multi handle has one for this handle.
        func remove(_ handle: CurlHandle) {
            _ = OKCurl.multiRemove(multi, handle.easy)
        }

        /// Tells libcurl that a socket is ready.
        func act(_ socket: Int32, _ readiness: Int32) {
            var running: Int32 = 0
            _ = OKCurl.multiAction(multi, socket, readiness, &running)
        }

        /// Calls libcurl at the time for which it asked.
        func actOnTime() { act(Int32(OKCurlSocketTimeout), 0) }

        /// Returns the next transfer that has ended, or `nil` if there is none.
        func nextEnded() -> (transfer: CurlTransfer, code: Int32)? {
            var remaining: Int32 = 0
            while let message = OKCurl.multiReadMessage(multi, &remaining) {
                guard Int(message.pointee.kind) == OKCurlMessageDone else { continue }
                let (easy, code) = (message.pointee.easy, message.pointee.data.result)
                var context: UnsafeMutableRawPointer?
                _ = OKCurlGetPrivate(easy, &context)
                guard let context else { continue }
                return (Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue(), code)
            }
            return nil
        }
    }
#endif
