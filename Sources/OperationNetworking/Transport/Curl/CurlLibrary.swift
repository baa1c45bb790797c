// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import OperationCore

    /// The libcurl of this process.
    package struct CurlLibrary: Sendable {
        /// Its version as 0xXXYYZZ.
        let number: UInt32
        /// Its version in words, and that of its TLS library.
        let version: String
        private let features: Int

        /// The library, or why it cannot be used.
        package static let shared = Result<CurlLibrary, NetworkError> { () throws(NetworkError) in try CurlLibrary() }

        /// It is the first that says when a request is about to be sent: without that nobody could know whether it was sent.
        private static let oldest: UInt32 = 0x07_50_00

        /// The library's file.
        private static let usualFile = "libcurl.so.4"
        private static let file = Locked(usualFile)

        /// Looks for another file, and for nothing else: for tests of what is done where there is none.
        ///
        /// To be called before anything is sent or asked.
        package static func seek(only name: String) { file.withLock { $0 = name } }

        private init() throws(NetworkError) {
            if let name = Self.load(Self.file.withLock { $0 }) {
                throw Self.refusal("\(name) was not found. Install libcurl 7.80 or newer (Debian: libcurl4).")
            }
            guard OKCurl.globalInit(Int(OKCurlGlobalAll)) == 0, let info = OKCurl.versionInfo(0)?.pointee,
                let text = info.version
            else { throw Self.refusal("libcurl could not be initialised.") }
            number = info.number
            features = Int(info.features)
            version = String(cString: text) + (info.tlsVersion.map { " " + String(cString: $0) } ?? "")
            if let refusal = Self.refusal(ofVersion: number, version) { throw refusal }
            guard has(OKCurlFeatureTLS), has(OKCurlFeatureAsynchronousNames) else {
                throw Self.refusal("libcurl \(version) was built without TLS or without asynchronous name look-up.")
            }
        }

        /// Finds the functions; what was not found, if anything.
        private static func load(_ file: String) -> String? {
            file.withCString { name in
                var problem: UnsafePointer<CChar>?
                guard !OKCurlLoad(name, file == usualFile, &problem) else { return nil }
                return problem.map { String(cString: $0) } ?? file
            }
        }

        /// Why a version cannot be used.
        package static func refusal(ofVersion number: UInt32, _ version: String) -> NetworkError? {
            number >= oldest ? nil : refusal("libcurl \(version) is too old. Install 7.80 or newer.")
        }

        private static func refusal(_ message: String) -> NetworkError {
            NetworkError(
                code: .sessionUnavailable, phase: .waiting, message: "CurlSession cannot work here: \(message)")
        }

        func has(_ feature: Int) -> Bool { features & feature != 0 }

        /// Whether it can let go of a transfer without waiting for the thread that looks a name up (7.87).
        package var leavesLookupsBehind: Bool { number >= 0x07_57_00 }

        /// Whether its messages tell which streams an HTTP/2 server did not process.
        ///
        /// From 7.88 on libcurl reports a GOAWAY with its last stream. The upper limit is the newest version whose
        /// source was read. The source shows that a transfer cannot change its connection without a new redirect time.
        var tellsRefusals: Bool { (0x07_58_00..<0x08_13_00).contains(number) }

        /// Whether a handle may serve a second transfer.
        ///
        /// From 7.83 on libcurl remembers the last header field of a transfer, and up to 8.1.0 it goes on doing so in the
        /// next one: a server whose first field begins with a blank makes it use freed memory.
        var forgetsHeaders: Bool { number < 0x07_53_00 || number > 0x08_01_00 }
    }
#endif
