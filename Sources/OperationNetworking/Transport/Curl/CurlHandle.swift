// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation

    /// An easy handle of libcurl, which is used for one transfer after another.
    ///
    /// An option that is the same for the next request is not set again.
    final class CurlHandle {
        /// The way in which the body is added to the request.
        enum Upload: Equatable {
            case none
            /// As a whole, after the headers.
            case whole(Int)
            /// In portions, with the length or `nil` if it is not known.
            case portions(Int64?)
        }

        let easy: OpaquePointer
        private let text = UnsafeMutablePointer<CChar>.allocate(capacity: 256)
        private var headers = CurlList([])
        private var whole: UnsafeMutableRawPointer?
        private var method = "GET"
        private var upload = Upload.none
        // Only the session's thread uses the numbers, and no access overlaps another.
        @exclusivity(unchecked) private var numbers = [Int?](repeating: nil, count: Number.allCases.count)
        /// Whether the headers consist of the accepted codings only, as in most requests.
        private var hasPlainHeaders = false
        var overrides = CurlList([])
        /// Whether to close the connection if the transfer ends early and no other transfer uses the connection.
        ///
        /// Over HTTP/1, this happens in any case. Over HTTP/2, libcurl keeps the connection. libcurl notifies the
        /// server of an abandoned stream only with its next message, which may never come.
        var forbidsReuse = false {
            didSet {
                if forbidsReuse != oldValue { set(OKCurlOptionForbidReuse, forbidsReuse ? 1 : 0) }
            }
        }

        /// The time in milliseconds for a connection that libcurl must not end because of its own limit.
        private static let longestConnect: Int64 = 2_000_000_000

        /// The number of seconds without a byte after which the system checks whether the other side still responds.
        private static let probedAfter = 60
        /// The number of seconds between two such checks, several of which must fail before the system gives up.
        private static let probedAgainAfter = 15

        init?(_ configuration: CurlSession.Configuration, _ library: CurlLibrary) {
            guard let easy = OKCurl.easyInit() else {
                text.deallocate()
                return nil
            }
            self.easy = easy
            text[0] = 0
            set(OKCurlOptionErrorBuffer, text)
            set(OKCurlOptionNoSignals, 1)
            // http and https.
            set(OKCurlOptionProtocols, 3)
            set(OKCurlOptionSuppressConnectHeaders, 1)
            set(OKCurlOptionPathAsIs, 1)
            // This read size needs a fourth of the calls that libcurl's default size needs. Receivers get smaller
            // portions.
            set(OKCurlOptionBufferSize, 64 << 10)
            // Otherwise, a response without an idle limit would be awaited forever if the server is gone.
            set(OKCurlOptionTCPKeepAlive, 1)
            set(OKCurlOptionTCPKeepAliveIdle, Self.probedAfter)
            set(OKCurlOptionTCPKeepAliveInterval, Self.probedAgainAfter)
            // The end of a session does not wait for name lookups. Before 7.87, libcurl does.
            if library.leavesLookupsBehind { set(OKCurlOptionQuickExit, 1) }
            set(OKCurlOptionExpectTimeoutMilliseconds, 1000)
            set(OKCurlOptionMaximumIdleAge, Int(max(configuration.idleLifetime.components.seconds, 1)))
            set(configuration)
            set(configuration.proxy)
            set(configuration.tls)
        }

        deinit {
            OKCurl.easyCleanup(easy)
            text.deallocate()
            whole?.deallocate()
        }

        /// The message of libcurl about the last failure.
        var errorText: String { String(cString: text) }

        func set(_ option: Int, _ value: Int) { _ = OKCurlSetLong(easy, Int32(option), value) }
        func set(_ option: Int, _ value: UnsafeRawPointer?) { _ = OKCurlSetPointer(easy, Int32(option), value) }
        /// libcurl copies the text.
        func set(_ option: Int, _ value: String?) {
            guard let value else { return set(option, UnsafeRawPointer?.none) }
            value.withCString { set(option, UnsafeRawPointer($0)) }
        }

        /// The numeric options that may differ between requests.
        private enum Number: Int, CaseIterable {
            case waitForMultiplexing, version, freshConnect, streamWeight, connectTimeout, verbose

            var option: Int {
                switch self {
                case .waitForMultiplexing: OKCurlOptionWaitForMultiplexing
                case .version: OKCurlOptionHTTPVersion
                case .freshConnect: OKCurlOptionFreshConnect
                case .streamWeight: OKCurlOptionStreamWeight
                case .connectTimeout: OKCurlOptionConnectTimeoutMilliseconds
                case .verbose: OKCurlOptionVerbose
                }
            }
        }

        /// Sets a number, unless it is set already.
        ///
        /// - Parameter usual: The value that libcurl uses if the number was never set.
        private func setAgain(_ number: Number, _ value: Int, usual: Int? = nil) {
            guard numbers[number.rawValue] ?? usual != value else { return }
            numbers[number.rawValue] = value
            set(number.option, value)
        }

        func long(_ info: Int) -> Int {
            var value = 0
            _ = OKCurlGetLong(easy, Int32(info), &value)
            return value
        }

        func size(_ info: Int) -> Int64 {
            var value: Int64 = 0
            _ = OKCurlGetSize(easy, Int32(info), &value)
            return value
        }

        func string(_ info: Int) -> String? {
            var value: UnsafePointer<CChar>?
            _ = OKCurlGetText(easy, Int32(info), &value)
            return value.map { String(cString: $0) }
        }
    }

    // One request.
    extension CurlHandle {
        /// Sets all options of a request.
        ///
        /// - Parameters:
        ///   - request: The request.
        ///   - wholeLimit: The maximum size of a body that is passed as a whole.
        ///   - wantsNewConnection: Whether the request must not use an existing connection.
        func prepare(_ request: NetworkRequest, wholeLimit: Int, wantsNewConnection: Bool) {
            text[0] = 0
            forbidsReuse = false
            set(OKCurlOptionURL, request.url.absoluteString)
            let upload = Self.upload(request, wholeLimit)
            set(upload, request)
            setHeaders(request)
            setAgain(.waitForMultiplexing, request.mayMultiplex ? 1 : 0)
            setAgain(.verbose, 0, usual: 0)
            setAgain(.version, request.options.newestVersion.curlNumber)
            setAgain(.freshConnect, wantsNewConnection ? 1 : 0, usual: 0)
            setAgain(.streamWeight, request.options.priority.streamWeight, usual: TransferPriority.normal.streamWeight)
        }

        /// Sets the time that libcurl may take for a connection after it got the request, or `.max` for no limit.
        func limitConnect(milliseconds: Int64) {
            // libcurl cannot count higher.
            let limit = min(milliseconds, Self.longestConnect)
            setAgain(.connectTimeout, Int(limit))
        }

        /// Releases the request before the next one comes, because it may be large or secret.
        func forgetRequest() {
            if let whole {
                set(OKCurlOptionPostData, UnsafeRawPointer?.none)
                whole.deallocate()
                self.whole = nil
            }
            guard !hasPlainHeaders, headers.head != nil else { return }
            set(OKCurlOptionHeaders, UnsafeRawPointer?.none)
            headers = CurlList([])
        }

        /// Makes libcurl report what it does, until the handle is prepared for the next request.
        func enableNotices() { setAgain(.verbose, 1) }

        /// Lets the transfer continue until the name of the host was looked up, however long that takes.
        func waitForName() { limitConnect(milliseconds: .max) }

        private static func upload(_ request: NetworkRequest, _ wholeLimit: Int) -> Upload {
            switch request.body.source {
            case .none: return ["POST", "PUT", "PATCH"].contains(request.method) ? .whole(0) : .none
            case .data(let data) where data.count <= wholeLimit && !request.expectsContinue:
                return .whole(data.count)
            default: return .portions(request.body.length)
            }
        }

        private func set(_ upload: Upload, _ request: NetworkRequest) {
            if upload == .none, self.upload == .none, request.method == method { return }
            if case .whole = self.upload { set(OKCurlOptionPostData, UnsafeRawPointer?.none) }
            whole?.deallocate()
            whole = nil
            // The option for GET resets the options of an upload or a HEAD request.
            set(OKCurlOptionGet, 1)
            switch upload {
            case .none where request.method == "HEAD": set(OKCurlOptionNoBody, 1)
            case .none: break
            case .whole(let count):
                set(OKCurlOptionPost, 1)
                _ = OKCurlSetSize(easy, Int32(OKCurlOptionPostSize), Int64(count))
                let memory = UnsafeMutableRawPointer.allocate(byteCount: max(count, 1), alignment: 1)
                if case .data(let data) = request.body.source, count > 0 {
                    data.copyBytes(to: UnsafeMutableRawBufferPointer(start: memory, count: count))
                }
                whole = memory
                set(OKCurlOptionPostData, UnsafeRawPointer(memory))
            case .portions(let length):
                set(OKCurlOptionUpload, 1)
                _ = OKCurlSetSize(easy, Int32(OKCurlOptionUploadSize), length ?? -1)
            }
            let isUsual = request.method == "GET" && upload == .none || request.method == "HEAD"
            set(OKCurlOptionMethod, isUsual ? nil : request.method)
            self.upload = upload
            method = request.method
        }

        private func setHeaders(_ request: NetworkRequest) {
            let isDecoded = request.isDecoded
            let isPlain = request.headers.isEmpty && upload == .none && isDecoded
            if isPlain, hasPlainHeaders { return }
            hasPlainHeaders = isPlain
            var lines: [CurlList.Line] = []
            lines.reserveCapacity(request.headers.count + 3)
            for field in request.headers { lines.append(.field(field.name, field.value)) }
            if isDecoded { lines.append(.field("Accept-Encoding", ContentDecoder.codings)) }
            if upload != .none {
                if !request.headers.contains("Content-Type") { lines.append(.without("Content-Type")) }
                lines.append(request.expectsContinue ? .field("Expect", "100-continue") : .without("Expect"))
            }
            if lines.isEmpty, headers.head == nil { return }
            let list = CurlList(lines)
            set(OKCurlOptionHeaders, UnsafeRawPointer(list.head))
            headers = list
        }

        /// The number of body bytes that were passed as a whole.
        var wholeCount: Int64 {
            if case .whole(let count) = upload { Int64(count) } else { 0 }
        }
    }

    extension NetworkRequest {
        /// Whether the body of the response is to be decompressed, if it is compressed.
        ///
        /// A part of a compressed body cannot be decompressed on its own, so a request with a `Range` header is
        /// excluded.
        var isDecoded: Bool {
            guard options.decodesContent, ContentDecoder.isAvailable else { return false }
            return headers.allSatisfy { !$0.isNamed("Accept-Encoding") && !$0.isNamed("Range") }
        }

        /// Whether the request may share a connection with others.
        ///
        /// Without TLS no connection can carry several requests. With TLS this is known when TLS is established.
        var mayMultiplex: Bool { origin.isSecure && options.newestVersion >= .http2 }
    }

    extension HTTPVersion {
        fileprivate var curlNumber: Int { self < .http1_1 ? 1 : self < .http2 ? 2 : 4 }
    }

    // The options that all transfers of a session share.
    extension CurlHandle {
        func set(_ configuration: CurlSession.Configuration) {
            set(OKCurlOptionUnixSocketPath, configuration.unixSocketPath)
            guard !configuration.addressOverrides.isEmpty else { return }
            overrides = CurlList(AddressOverride.inOrder(configuration.addressOverrides).map { .text($0.line) })
            set(OKCurlOptionConnectTo, UnsafeRawPointer(overrides.head))
        }

        func set(_ proxy: CurlSession.Proxy) {
            switch proxy.kind {
            case .environment: break
            case .none: set(OKCurlOptionProxy, "")
            case .explicit(let url, let user, let password, let exceptions):
                set(OKCurlOptionProxy, url)
                // Every version decodes this option. From 8.8 on, libcurl does not decode the separate options for the
                // user name and the password.
                set(OKCurlOptionProxyCredentials, user.map { "\(Self.escaped($0)):\(Self.escaped(password))" })
                set(OKCurlOptionNoProxy, exceptions)
            }
        }

        /// Returns a user name or password of a proxy with escaped percent signs and colons.
        ///
        /// libcurl decodes escapes, and a colon separates the user name from the password.
        private static func escaped(_ text: String) -> String {
            let bytes = text.utf8.flatMap { byte -> [UInt8] in
                byte == 0x25 || byte == 0x3A ? Array("%".utf8) + Hexadecimal.upper(byte) : [byte]
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        func set(_ tls: CurlSession.TLS) {
            set(OKCurlOptionVerifyPeer, 1)
            set(OKCurlOptionVerifyHost, 2)
            set(tls.trust)
            if let keys = tls.pinnedKeys {
                let none = "sha256//" + Data(repeating: 0, count: 32).base64EncodedString()
                set(OKCurlOptionPinnedKeys, keys.isEmpty ? none : keys.map { "sha256//\($0)" }.joined(separator: ";"))
            }
            set(OKCurlOptionClientCertificate, tls.clientCertificate?.path)
            set(OKCurlOptionClientKey, tls.clientKey?.path)
            // Without a password, OpenSSL would ask for it on the terminal and wait.
            set(OKCurlOptionClientKeyPassword, tls.clientKeyPassword ?? "")
            let versions = tls.oldestVersion.number | (tls.newestVersion?.number ?? 0) << 16
            set(OKCurlOptionTLSVersion, versions)
            set(OKCurlOptionProxyTLSVersion, versions)
        }

        /// Sets the trusted certificates for servers and for proxies.
        ///
        /// The folder with which libcurl was built must be removed, because it would be trusted in addition.
        private func set(_ trust: CurlSession.TLS.Trust) {
            if trust == .system { return }
            set(OKCurlOptionCAFolder, UnsafeRawPointer?.none)
            set(OKCurlOptionProxyCAFolder, UnsafeRawPointer?.none)
            if case .data(let data) = trust, !data.isEmpty, set(OKCurlOptionCAData, data),
                set(OKCurlOptionProxyCAData, data)
            {
                return
            }
            // Without certificates, no server must be trusted, not every server. With some TLS libraries, such as
            // GnuTLS, older versions of libcurl cannot read certificates from memory.
            var path = "/dev/null"
            if case .file(let url) = trust { path = url.path }
            set(OKCurlOptionCAFile, path)
            set(OKCurlOptionProxyCAFile, path)
        }

        /// Sets an option to bytes, and returns `false` if libcurl does not support the option.
        private func set(_ option: Int, _ data: Data) -> Bool {
            var data = data
            let count = data.count
            return data.withUnsafeMutableBytes { (bytes: UnsafeMutableRawBufferPointer) -> Bool in
                var blob = OKCurlBlob(data: bytes.baseAddress, length: count, flags: UInt32(OKCurlBlobIsCopied))
                return withUnsafePointer(to: &blob) { OKCurlSetPointer(easy, Int32(option), UnsafeRawPointer($0)) == 0 }
            }
        }
    }

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

        /// Tells libcurl that a socket is ready, or that the time for which libcurl asked has come.
        func act(_ socket: Int32, _ readiness: Int32) {
            var running: Int32 = 0
            _ = OKCurl.multiAction(multi, socket, readiness, &running)
        }

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
