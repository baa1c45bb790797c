// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A log that writes events as lines of JSON, each either completely or not at all.
///
/// The class is not Sendable, because the program uses it only on the queue of the run.
final class RunLog {
    private enum State {
        case open(Int32)
        /// The reader of the log has ended, which is not an error.
        case abandoned
        case failed(Int32)
    }

    private var state: State
    private let isOurs: Bool
    private let encoder: JSONEncoder

    /// Opens the log, or returns nil if the log cannot be written.
    ///
    /// - Parameter isWaiting: A Boolean value that indicates whether a write waits for room in the output. Tests use
    ///   `false` to simulate an output that another program made nonblocking.
    init?(_ place: Settings.JSONPlace, isWaiting: Bool = true) {
        encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        switch place {
        case .standardOutput: (state, isOurs) = (.open(1), false)
        case .file(let path):
            let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (isWaiting ? 0 : O_NONBLOCK), 0o644)
            if descriptor < 0 { return nil }
            (state, isOurs) = (.open(descriptor), true)
        }
    }

    deinit {
        if case .open(let descriptor) = state, isOurs { close(descriptor) }
    }

    /// The reason why the log is incomplete, or nil if the log is complete.
    var problem: String? {
        if case .failed(let number) = state { String(cString: strerror(number)) } else { nil }
    }

    func write(_ event: RunEvent) {
        var event = event
        event.time = Date.now.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: true))
        guard case .open(let descriptor) = state, let data = try? encoder.encode(event) else { return }
        let line = Array(data) + [10]
        var bytes = line[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if count < 0, errno == EAGAIN || errno == EWOULDBLOCK {
                // Another program made the descriptor nonblocking, so this waits until the descriptor accepts more
                // data.
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&wanted, 1, -1)
            } else if count == 0 || errno != EINTR {
                return end(descriptor, count == 0 ? EIO : errno, wrote: line.count - bytes.count)
            }
        }
    }

    private func end(_ descriptor: Int32, _ number: Int32, wrote count: Int) {
        // An incomplete line would also make the next line invalid. If another program writes to the file, the
        // incomplete line might not be the last line.
        var status = stat()
        if count > 0, isOurs, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            _ = ftruncate(descriptor, status.st_size - off_t(count))
        }
        if isOurs { close(descriptor) }
        state = number == EPIPE && !isOurs ? .abandoned : .failed(number)
    }
}
