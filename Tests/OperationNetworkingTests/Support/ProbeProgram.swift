// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A program of the fixtures that runs beside the tests, and what it prints.
struct ProbeProgram: Sendable {
    private let number: Int32
    private let output = Output()
    private let gate = Gate()

    private final class Output: Sendable {
        let text = Locked("")
    }

    init(_ name: String, _ arguments: [String]) throws {
        let process = Process(), pipe = Pipe()
        let executable: URL = try #require(Self.url(name), "\(name) was not built beside the tests.")
        process.executableURL = executable
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        try process.run()
        number = process.processIdentifier
        Thread { [output, gate] in
            let bytes = pipe.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            output.text.withLock { $0 = String(decoding: bytes, as: UTF8.self) }
            gate.open()
        }.start()
    }

    func kill() { _ = Foundation.kill(number, SIGKILL) }

    /// What it printed, when it has ended.
    func ended() async -> String {
        await gate.passage()
        return output.text.withLock { $0 }
    }

    /// The executable, beside the bundle of the tests wherever that was built.
    static func url(_ name: String) -> URL? {
        let bundles = Bundle.allBundles.map(\.bundleURL).filter { $0.pathExtension == "xctest" }
        let executables = [Bundle.main.executableURL, CommandLine.arguments.first.map(URL.init(fileURLWithPath:))]
        let folders =
            (bundles + executables.compactMap { $0 }).map { $0.deletingLastPathComponent() } + [Bundle.main.bundleURL]
        return folders.map { $0.appendingPathComponent(name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }
}
