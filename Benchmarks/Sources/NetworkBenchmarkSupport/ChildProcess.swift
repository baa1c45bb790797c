// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A child process that measures something, or that is measured.
package final class ChildProcess {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// Starts a program, or this program in another role, and returns nil if this fails.
    package init?(_ arguments: [String], program: String? = nil) {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.executableURL = program.map { URL(fileURLWithPath: $0) } ?? own
        process.arguments = arguments
        // Without the proxy variables, all requests stay on this computer.
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
        process.standardInput = input
        process.standardOutput = output
        guard (try? process.run()) != nil else { return nil }
    }

    /// Returns the numbers that the process prints until it ends.
    package func numbers() -> [Double] {
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
    }

    /// Waits until the process prints something.
    package func waitForWord() { _ = output.fileHandleForReading.availableData }

    /// Lets the process continue.
    package func goOn() { input.fileHandleForWriting.write(Data("\n".utf8)) }

    /// The number of bytes of private memory.
    package var memory: Int { ProcessMemory.bytes("RssAnon", of: "\(process.processIdentifier)") }

    package func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
