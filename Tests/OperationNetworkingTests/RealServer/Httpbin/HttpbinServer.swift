// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationTestKit

    /// A real httpbin that runs as a child process of the tests.
    ///
    /// All its functions block. Call them in `TestThread.run`.
    final class HttpbinServer: Sendable {
        /// The server that all tests share.
        ///
        /// It ends with the process.
        static let shared = Task { try await TestThread.run { try HttpbinServer() } }

        /// The path at which `Scripts/prepare-httpbin` installed Python, or `nil` if it did not.
        private static let python: String? = {
            var root = URL(fileURLWithPath: #filePath)
            for _ in 0..<5 { root.deleteLastPathComponent() }
            let place = root.appendingPathComponent(".build/httpbin")
            let isComplete = FileManager.default.fileExists(atPath: place.appendingPathComponent("complete").path)
            return isComplete ? place.appendingPathComponent("bin/python").path : nil
        }()

        /// A Boolean value that indicates whether the httpbin tests can run here.
        static let isThere = python != nil

        /// Unblocks the signals, because Foundation starts programs with most signals blocked.
        ///
        /// The private files of gunicorn also go into the folder.
        private static let script = """
            import os, signal, sys
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.environ["HOME"] = sys.argv.pop(1)
            sys.argv[0] = "gunicorn"
            from gunicorn.app.wsgiapp import run
            run()
            """

        let port: UInt16
        private let program: GuardedProgram

        private init() throws {
            guard let python = Self.python else {
                throw ServerFailure(description: "There is no httpbin. Run Scripts/prepare-httpbin.")
            }
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("httpbin-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data().write(to: folder.appendingPathComponent("litter"))
            port = LocalPort.free()
            let log = folder.appendingPathComponent("log")
            program = try GuardedProgram(
                python,
                [
                    "-c", Self.script, folder.path, "--bind", "127.0.0.1:\(port)", "--threads", "16", "--keep-alive",
                    "30",
                    "--worker-class", "gthread", "--worker-tmp-dir", folder.path, "--error-logfile", log.path,
                    "httpbin:app",
                ],
                removing: folder, endingBy: "QUIT")
            // gunicorn listens before it has loaded httpbin. The first request waits until httpbin is ready.
            let end = ContinuousClock.now + .seconds(60)
            while !LocalPort.isOpen(port) {
                guard program.isRunning, ContinuousClock.now < end else {
                    let text = try? String(contentsOf: log, encoding: .utf8)
                    program.end()
                    throw ServerFailure(description: "httpbin did not start: \(text ?? "")")
                }
                usleep(10_000)
            }
        }
    }
#endif
