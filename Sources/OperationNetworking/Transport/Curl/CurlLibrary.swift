// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import CurlDeclarations

    /// The libcurl of this process.
    struct CurlLibrary: Sendable {
        /// Its version as 0xXXYYZZ.
        let number: UInt32
        /// Its version in words, and that of its TLS library.
        let version: String
        private let features: Int

        /// The library, or why it cannot be used.
        static let shared = Result<CurlLibrary, NetworkError> { () throws(NetworkError) in try CurlLibrary() }

        private static let oldest: UInt32 = 0x07_44_00

        private init() throws(NetworkError) {
            var problem: UnsafePointer<CChar>?
            guard OKCurlLoad(&problem) else {
                let name = problem.map { String(cString: $0) } ?? "libcurl"
                throw Self.refusal("\(name) was not found. Install libcurl 7.68 or newer (Debian: libcurl4).")
            }
            guard OKCurl.globalInit(Int(OKCurlGlobalAll)) == 0, let info = OKCurl.versionInfo(0)?.pointee,
                let text = info.version
            else { throw Self.refusal("libcurl could not be initialised.") }
            number = info.number
            features = Int(info.features)
            version = String(cString: text) + (info.tlsVersion.map { " " + String(cString: $0) } ?? "")
            guard number >= Self.oldest else {
                throw Self.refusal("libcurl \(version) is too old. Install 7.68 or newer.")
            }
            guard has(OKCurlFeatureTLS), has(OKCurlFeatureAsynchronousNames) else {
                throw Self.refusal("libcurl \(version) was built without TLS or without asynchronous name look-up.")
            }
        }

        private static func refusal(_ message: String) -> NetworkError {
            NetworkError(
                code: .sessionUnavailable, phase: .waiting, message: "CurlSession cannot work here: \(message)")
        }

        func has(_ feature: Int) -> Bool { features & feature != 0 }

        /// Whether it says when a request is about to be sent (7.80).
        var announcesRequests: Bool { number >= 0x07_50_00 }

        /// Whether trust roots may be given as data (7.77).
        var takesTrustData: Bool { number >= 0x07_4D_00 }
    }
#endif
