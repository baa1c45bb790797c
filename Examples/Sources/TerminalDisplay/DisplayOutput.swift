// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An output to which a display writes.
public protocol DisplayOutput: Sendable {
    /// The current size of the output, which the display reads before each frame.
    var size: TerminalSize { get }

    /// Writes a text, in a single piece if possible.
    func write(_ text: String)
}

/// An output that writes to a file descriptor, such as standard error.
public struct DescriptorOutput: DisplayOutput {
    private let descriptor: Int32

    /// Creates an output for a file descriptor, which the output does not close.
    public init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Standard error, which is for progress, so that standard output contains only the results of a program.
    public static let standardError = DescriptorOutput(2)
    /// Standard output.
    public static let standardOutput = DescriptorOutput(1)

    /// The style that the output supports, according to the environment of the process.
    public var style: DisplayStyle {
        .detected(isTerminal: isatty(descriptor) == 1, environment: ProcessInfo.processInfo.environment)
    }

    /// The size of the terminal, or 80 by 24 if the descriptor is not a terminal or does not report its size.
    public var size: TerminalSize {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 else { return TerminalSize(columns: 80, rows: 24) }
        return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
    }

    /// Writes a text, and discards the rest if an error occurs, for example because the terminal was closed.
    public func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if count < 0, errno == EAGAIN {
                // Another program made the descriptor nonblocking, so this waits until the descriptor accepts more
                // data.
                var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                guard Foundation.poll(&poll, 1, -1) > 0 else { return }
            } else if count == 0 || errno != EINTR {
                return
            }
        }
    }
}
