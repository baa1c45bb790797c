// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation
    import OperationCore

    // The functions that libcurl calls. The last argument of each leads to the transfer, or to the loop.
    extension CurlTransfer {
        private static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
            context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
        }

        func setCallbacks() {
            let context = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
            handle.set(OKCurlOptionPrivate, context)
            setReceiving(context)
            setSending(context)
            setSockets(context)
            setRemarks(context)
        }

        private func setReceiving(_ context: UnsafeRawPointer) {
            handle.set(OKCurlOptionHeaderData, context)
            handle.set(OKCurlOptionWriteData, context)
            _ = OKCurlSetData(handle.easy, Int32(OKCurlOptionHeaderFunction)) { data, size, count, context in
                CurlTransfer.of(context)?.receiveHeader(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
            }
            _ = OKCurlSetData(handle.easy, Int32(OKCurlOptionWriteFunction)) { data, size, count, context in
                CurlTransfer.of(context)?.receive(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
            }
        }

        private func setSending(_ context: UnsafeRawPointer) {
            handle.set(OKCurlOptionReadData, context)
            handle.set(OKCurlOptionSeekData, context)
            _ = OKCurlSetData(handle.easy, Int32(OKCurlOptionReadFunction)) { data, size, count, context in
                let buffer = UnsafeMutableRawBufferPointer(start: data, count: size * count)
                return CurlTransfer.of(context)?.send(into: buffer) ?? OKCurlReadAbort
            }
            _ = OKCurlSetSeek(handle.easy) { context, offset, origin in
                guard origin == SEEK_SET else { return Int32(OKCurlSeekFailed) }
                return Int32(CurlTransfer.of(context)?.rewind(to: offset) ?? OKCurlSeekFailed)
            }
        }

        private func setSockets(_ context: UnsafeRawPointer) {
            handle.set(OKCurlOptionOpenSocketData, context)
            _ = OKCurlSetOpen(handle.easy) { context, _, address in
                guard let address = address?.pointee, let transfer = CurlTransfer.of(context), transfer.mayConnect()
                else { return -1 }
                let kind = address.type | Int32(socket: SOCK_CLOEXEC) | Int32(socket: SOCK_NONBLOCK)
                let descriptor = socket(address.family, kind, address.protocol)
                // libcurl does not learn why there is no socket, and would report that the server does not accept
                // connections.
                transfer.socketError = descriptor < 0 ? errno : 0
                if descriptor >= 0 { transfer.opened(descriptor) }
                return descriptor
            }
            setClosing()
            handle.set(OKCurlOptionLookupData, context)
            _ = OKCurlSetLookup(handle.easy) { _, _, context in
                CurlTransfer.of(context)?.connects()
                return 0
            }
            handle.set(OKCurlOptionPreRequestData, context)
            _ = OKCurlSetPreRequest(handle.easy) { context, _, _, remotePort, localPort in
                let ports = CurlSockets.Ports(
                    local: UInt16(truncatingIfNeeded: localPort), remote: UInt16(truncatingIfNeeded: remotePort))
                return Int32(CurlTransfer.of(context)?.announceRequest(over: ports) ?? OKCurlPreRequestAbort)
            }
        }

        /// libcurl calls the function only while ``CurlHandle/makeRemarks()`` is in effect.
        private func setRemarks(_ context: UnsafeRawPointer) {
            handle.set(OKCurlOptionDebugData, context)
            _ = OKCurlSetReport(handle.easy) { _, kind, text, count, context in
                guard kind == Int32(OKCurlReportIsText) else { return 0 }
                CurlTransfer.of(context)?.receive(remark: UnsafeRawBufferPointer(start: text, count: count))
                return 0
            }
        }

        /// A connection may live longer than the transfer that made it: the loop is told of its end.
        private func setClosing() {
            handle.set(OKCurlOptionCloseSocketData, loopContext)
            _ = OKCurlSetClose(handle.easy) { context, descriptor in
                CurlLoop.of(context)?.closes(descriptor)
                return close(descriptor)
            }
        }
    }
#endif
