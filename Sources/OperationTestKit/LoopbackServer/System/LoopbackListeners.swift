// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The sockets on which a server listens.
struct LoopbackListeners: Sendable {
    private(set) var files: [Int32] = []
    private(set) var addresses: [LoopbackAddress] = []

    init(_ options: LoopbackServer.Options) throws(LoopbackServerError) {
        do throws(LoopbackServerError) {
            for address in options.addresses { try add(address, options) }
        } catch {
            close()
            throw error
        }
    }

    func close() {
        for file in files { Sockets.close(file) }
        for case .unixSocket(let path) in addresses.map(\.kind) { Sockets.remove(path) }
    }

    private mutating func add(_ address: LoopbackAddress, _ options: LoopbackServer.Options) throws(LoopbackServerError)
    {
        // Both versions of IP get the same port where none was asked for, so that `localhost` leads to either.
        let port = address.port == 0 ? addresses.first { $0.port != 0 }?.port ?? 0 : address.port
        let (file, bound) = try Sockets.listen(on: address.with(port: port), options: options)
        files.append(file)
        addresses.append(bound)
    }
}
