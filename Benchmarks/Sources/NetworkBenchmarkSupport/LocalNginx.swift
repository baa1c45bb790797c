// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A local nginx with one worker, which serves two files of 100 bytes and a large file, and accepts uploads.
///
/// If requested, the server also offers HTTP/2 over TLS with a self-signed certificate.
package final class LocalNginx {
    /// The folder of the server, whose subfolder `root` contains the served files.
    package let folder: URL
    private let port = Int.random(in: 10_000...14_999) * 2
    private let hasTLS: Bool
    private let process = Process()

    /// The content of `small.json`, which has 100 bytes.
    package static let json =
        #"{"id":1234567,"title":"Kind of Blue","artist":"Miles Davis","year":1959,"isLive":false,"minutes":45}"#

    /// Starts nginx, or returns nil if nginx is not installed.
    package init?(largeSize: Int, hasTLS: Bool = false) {
        self.hasTLS = hasTLS
        let environment = ProcessInfo.processInfo.environment
        let paths = [environment["TRANSPORT_NGINX"], "/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("transport-\(UUID().uuidString)")
        guard let program = paths.compactMap({ $0 }).first(where: FileManager.default.isExecutableFile) else {
            return nil
        }
        process.executableURL = URL(fileURLWithPath: program)
        let configuration = folder.appendingPathComponent("nginx.conf")
        process.arguments = ["-p", folder.path, "-c", configuration.path, "-e", folder.path + "/error.log"]
        do {
            let root = folder.appendingPathComponent("root")
            try FileManager.default.createDirectory(
                at: root.appendingPathComponent("taken"), withIntermediateDirectories: true)
            try Data(repeating: 0x78, count: 100).write(to: root.appendingPathComponent("small"))
            try Data(Self.json.utf8).write(to: root.appendingPathComponent("small.json"))
            try Self.write(largeSize, to: root.appendingPathComponent("large"))
            if hasTLS, try !makeCertificate() { return nil }
            try Data(text.utf8).write(to: configuration)
            try process.run()
        } catch {
            return nil
        }
        for _ in 0..<500 where !FileManager.default.fileExists(atPath: "\(folder.path)/nginx.pid") { usleep(10_000) }
        guard process.isRunning else { return nil }
    }

    package func url(_ target: String) -> String { "http://127.0.0.1:\(port)/\(target)" }

    /// Returns a URL of the server with HTTP/2 over TLS.
    package func secureURL(_ target: String) -> String { "https://127.0.0.1:\(port + 1)/\(target)" }

    /// The path of the certificate for `secureURL(_:)`.
    package var certificate: String { folder.appendingPathComponent("certificate.pem").path }

    package func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)
    }

    private func makeCertificate() throws -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
            .components(separatedBy: " ")
            + ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder.path + "/key.pem", "-out", certificate]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    private static func write(_ size: Int, to file: URL) throws {
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        let block = Data((0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        for _ in 0..<size >> 20 { try handle.write(contentsOf: block) }
        try handle.close()
    }

    private var text: String {
        let secure = """
            listen 127.0.0.1:\(port + 1) ssl http2;
                    ssl_certificate \(certificate);
                    ssl_certificate_key \(folder.path)/key.pem;
            """
        return """
            daemon off;
            worker_processes 1;
            worker_rlimit_nofile 20000;
            \(getuid() == 0 ? "user root;" : "")
            pid \(folder.path)/nginx.pid;
            events { worker_connections 10000; }
            http {
                access_log off;
                client_max_body_size 0;
                client_body_temp_path \(folder.path)/body;
                proxy_temp_path \(folder.path)/proxy;
                fastcgi_temp_path \(folder.path)/fastcgi;
                uwsgi_temp_path \(folder.path)/uwsgi;
                scgi_temp_path \(folder.path)/scgi;
                keepalive_requests 1000000000;
                sendfile on;
                server {
                    listen 127.0.0.1:\(port);
                    \(hasTLS ? secure : "")
                    root \(folder.path)/root;
                    location /taken/ { dav_methods PUT; }
                    location /echo { return 200 '\(Self.json)'; }
                }
            }

            """
    }
}
