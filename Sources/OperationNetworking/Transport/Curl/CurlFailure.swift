// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    /// The error of a transfer, by what libcurl said of its end.
    struct CurlFailure {
        private let transfer: CurlTransfer
        private let code: Int32

        init(_ transfer: CurlTransfer, _ code: Int32) {
            self.transfer = transfer
            self.code = code
        }

        /// The error of an ended transfer; nil if it succeeded.
        var error: NetworkError? {
            guard code != 0 || !transfer.isResponseComplete else { return nil }
            let text = text
            let meaning = CurlMeaning(
                code: code, phase: transfer.phase, text: text, hasReceivedHeaders: transfer.hasReceivedHeaders,
                isResponseComplete: transfer.isResponseComplete, isRefused: transfer.isRefused,
                systemError: systemError)
            let (kind, message) = meaning.told
            var error = NetworkError(
                code: kind, phase: transfer.phase, message: message,
                underlying: .init(domain: "libcurl", number: Int(code), text: text))
            error.status = transfer.responseStatus
            return error
        }

        /// The system's number of the error because of which the transfer failed; 0 if it is not known.
        private var systemError: Int {
            switch code {
            case 7:
                transfer.socketError == 0
                    ? transfer.handle.long(OKCurlInfoSystemErrorNumber) : Int(transfer.socketError)
            // libcurl, its resolver and its TLS library do not say why they could not open a socket or a file.
            case 5, 6, 26, 35, 58, 77, 82: Int(DescriptorShortage.errorNumber)
            default: 0
            }
        }

        private var text: String {
            let said = transfer.handle.errorText
            return said.isEmpty || tellsProxy(said)
                ? OKCurl.easyErrorText(code).map { String(cString: $0) } ?? "" : said
        }

        /// Whether a text may have the address of the proxy in it, and in that a password.
        private func tellsProxy(_ said: String) -> Bool {
            if ["Received HTTP code", "Proxy CONNECT aborted"].contains(where: { said.hasPrefix($0) }) { return false }
            return code == 5 || said.lowercased().contains("proxy")
        }
    }
#endif
