// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking

    /// The protocol used with a real server.
    enum Wire: String, Sendable, CaseIterable {
        case plain
        case secure
        case http2

        var version: HTTPVersion { self == .http2 ? .http2 : .http1_1 }

        func port(_ ports: NginxPorts) -> UInt16 {
            switch self {
            case .plain: ports.plain
            case .secure: ports.secure
            case .http2: ports.http2
            }
        }

        func url(_ target: String, _ ports: NginxPorts) throws -> URL {
            let text = "\(self == .plain ? "http" : "https")://127.0.0.1:\(port(ports))\(target)"
            guard let url = URL(string: text) else { throw ServerFailure(description: "\(text) is no URL") }
            return url
        }
    }
#endif
