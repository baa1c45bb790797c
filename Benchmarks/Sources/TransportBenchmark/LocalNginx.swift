// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An nginx with one worker on this machine, which serves a file of 100 bytes.
final class LocalNginx {
    /// The URL of the file.
    let url: String
    private let process = Process()
    private let folder: URL

    /// Starts it; nil if there is none.
    init?() {
        let environment = ProcessInfo.processInfo.environment
        let paths = [environment["TRANSPORT_NGINX"], "/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
        guard let program = paths.compactMap({ $0 }).first(where: FileManager.default.isExecutableFile) else {
            return nil
        }
        let port = Int.random(in: 20_000...29_999)
        url = "http://127.0.0.1:\(port)/small"
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("transport-\(UUID().uuidString)")
        process.executableURL = URL(fileURLWithPath: program)
        let configuration = folder.appendingPathComponent("nginx.conf")
        process.arguments = ["-p", folder.path, "-c", configuration.path, "-e", folder.path + "/error.log"]
        do {
            let root = folder.appendingPathComponent("root")
            try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
            try Data(repeating: 0x78, count: 100).write(to: root.appendingPathComponent("small"))
            try Data(Self.configuration(port: port, folder: folder.path).utf8).write(to: configuration)
            try process.run()
        } catch {
            return nil
        }
        Thread.sleep(forTimeInterval: 0.3)
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)
    }

    private static func configuration(port: Int, folder: String) -> String {
        """
        daemon off;
        worker_processes 1;
        pid \(folder)/nginx.pid;
        events { worker_connections 20000; }
        http {
            access_log off;
            client_body_temp_path \(folder)/body;
            proxy_temp_path \(folder)/proxy;
            fastcgi_temp_path \(folder)/fastcgi;
            uwsgi_temp_path \(folder)/uwsgi;
            scgi_temp_path \(folder)/scgi;
            keepalive_requests 1000000000;
            server { listen 127.0.0.1:\(port); root \(folder)/root; }
        }

        """
    }
}
