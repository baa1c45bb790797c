// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    /// A multi handle of libcurl: all transfers of a session, and the connections that it keeps.
    ///
    /// It tells its loop which sockets to watch, and when it wants to be called.
    final class CurlMulti {
        private let multi: OpaquePointer

        /// Nil if there is no memory or descriptor left.
        init?(_ configuration: CurlSession.Configuration, for loop: CurlLoop) {
            guard let multi = OKCurlMultiMake() else { return nil }
            self.multi = multi
            let context = UnsafeRawPointer(Unmanaged.passUnretained(loop).toOpaque())
            _ = OKCurlMultiSetPointer(multi, Int32(OKCurlMultiOptionSocketData), context)
            _ = OKCurlMultiSetPointer(multi, Int32(OKCurlMultiOptionTimerData), context)
            // 2: several requests over one connection where HTTP/2 is spoken.
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

        /// So many connections may there be, and some more for transfers that wait for no other.
        func limitConnections(_ configuration: CurlSession.Configuration, beyond more: Int = 0) {
            for (option, value) in [
                (OKCurlMultiOptionMaximumConnections, configuration.maximumConnections),
                (OKCurlMultiOptionMaximumHostConnections, configuration.maximumConnectionsPerHost),
            ] {
                let (limit, overflow) = max(value, 1).addingReportingOverflow(more)
                _ = OKCurlMultiSetLong(multi, Int32(option), overflow ? .max : limit)
            }
        }

        /// Takes on a transfer; what libcurl says if it does not.
        func add(_ handle: CurlHandle) -> NetworkError.Underlying? {
            let code = OKCurl.multiAdd(multi, handle.easy)
            guard code != 0 else { return nil }
            let text = OKCurl.multiErrorText(code).map { String(cString: $0) } ?? ""
            return .init(domain: "libcurl multi", number: Int(code), text: text)
        }

        /// Gives up a transfer, or nothing if it has none of this handle.
        func remove(_ handle: CurlHandle) {
            _ = OKCurl.multiRemove(multi, handle.easy)
        }

        /// Something can be done at a socket.
        func act(_ socket: Int32, _ readiness: Int32) {
            var running: Int32 = 0
            _ = OKCurl.multiAction(multi, socket, readiness, &running)
        }

        /// The moment has come at which it wanted to be called.
        func actOnTime() { act(Int32(OKCurlSocketTimeout), 0) }

        /// The next transfer that has ended.
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
