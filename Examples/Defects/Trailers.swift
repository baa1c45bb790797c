// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import FoundationNetworking

let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
listen(listener, 1)
var (address, size) = (sockaddr_in(), socklen_t(16))
withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = getsockname(listener, $0, &size)
    }
}
Thread.detachNewThread {
    let client = accept(listener, nil, nil)
    let response =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "1\r\na\r\n0\r\nX-Trailer: 1\r\n\r\n"
    write(client, response, response.utf8.count)
}
let port = UInt16(bigEndian: address.sin_port)
guard let url = URL(string: "http://127.0.0.1:\(port)/") else { exit(1) }
print(try await URLSession.shared.data(from: url).0.count, "byte")
