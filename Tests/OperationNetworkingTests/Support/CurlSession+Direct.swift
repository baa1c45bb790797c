// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import OperationNetworking

    extension CurlSession {
        /// A session that asks the server itself, whatever proxy the environment names.
        static func direct(_ change: (inout Configuration) -> Void = { _ in }) -> CurlSession {
            var configuration = Configuration()
            configuration.proxy = .none
            change(&configuration)
            return CurlSession(configuration: configuration)
        }
    }
#endif
