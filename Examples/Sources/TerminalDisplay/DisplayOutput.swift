// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Where a display writes to.
public protocol DisplayOutput: Sendable {
    /// How large it is now; asked before each frame.
    var size: TerminalSize { get }

    /// Writes all of a text, in one piece where that is possible.
    func write(_ text: String)
}

/// A file descriptor, such as that of the standard error.
public struct DescriptorOutput: DisplayOutput {
    private let descriptor: Int32

    /// Makes an output of a descriptor, which stays its owner's.
    public init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// The standard error, where progress belongs: what a program gives is on the standard output.
    public static let standardError = DescriptorOutput(2)
    /// The standard output.
    public static let standardOutput = DescriptorOutput(1)

    /// What it can show, if the process's environment is believed.
    public var style: DisplayStyle {
        .detected(isTerminal: isatty(descriptor) == 1, environment: ProcessInfo.processInfo.environment)
    }

    /// The terminal's size; 80 by 24 if it is none, or does not say.
    public var size: TerminalSize {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 else { return TerminalSize(columns: 80, rows: 24) }
        return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
    }

    /// Writes all of it; what cannot be written, as to a terminal that is gone, is let go by.
    public func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if count < 0, errno == EAGAIN {
                // Somebody else made it so that nothing waits: wait until it takes more.
                var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                guard Foundation.poll(&poll, 1, -1) > 0 else { return }
            } else if count == 0 || errno != EINTR {
                return
            }
        }
    }
}
