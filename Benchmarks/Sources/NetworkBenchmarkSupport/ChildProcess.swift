// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A program that measures something, or is measured.
package final class ChildProcess {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// Starts a program, or this one in another role; nil if it cannot be started.
    package init?(_ arguments: [String], program: String? = nil) {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.executableURL = program.map { URL(fileURLWithPath: $0) } ?? own
        process.arguments = arguments
        // All of it stays on this machine.
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
        process.standardInput = input
        process.standardOutput = output
        guard (try? process.run()) != nil else { return nil }
    }

    /// The numbers that it prints until its end.
    package func numbers() -> [Double] {
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
    }

    /// Waits until it prints something.
    package func waitForWord() { _ = output.fileHandleForReading.availableData }

    /// Lets it go on.
    package func goOn() { input.fileHandleForWriting.write(Data("\n".utf8)) }

    /// Bytes of memory that are its own.
    package var memory: Int { ProcessMemory.bytes("RssAnon", of: "\(process.processIdentifier)") }

    package func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
