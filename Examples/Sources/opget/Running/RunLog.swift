// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// One line of the log for programs.
struct RunEvent: Encodable, Sendable {
    var event: String
    var time = ""
    var index: Int?
    var url: String?
    var file: String?
    var bytes: Int64?
    var total: Int64?
    var resumed: Int64?
    var discarded: Int64?
    var segments: Int?
    var attempt: Int?
    var pause: Double?
    var seconds: Double?
    var code: String?
    var status: Int?
    var exit: Int32?
    var message: String?
    var done: Int?
    var skipped: Int?
    var failed: Int?

    init(_ event: String, _ item: DownloadItem? = nil) {
        self.event = event
        index = item?.index
        url = item?.shownURL
    }
}

/// Writes events as lines of JSON, each in one piece.
///
/// Not Sendable on purpose: it stays on the queue of the run.
final class RunLog {
    private var descriptor: Int32
    private let isOurs: Bool
    private let encoder: JSONEncoder

    /// Opens the log; nil if it cannot be written.
    init?(_ place: Settings.JSONPlace) {
        encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        switch place {
        case .standardOutput: (descriptor, isOurs) = (1, false)
        case .file(let path):
            descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
            isOurs = true
            if descriptor < 0 { return nil }
        }
    }

    deinit {
        if isOurs, descriptor >= 0 { close(descriptor) }
    }

    func write(_ event: RunEvent) {
        var event = event
        event.time = Date.now.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: true))
        guard descriptor >= 0, let data = try? encoder.encode(event) else { return }
        var bytes = Array(data)[...]
        bytes.append(10)
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if count == 0 || errno != EINTR {
                // Whoever read it is gone.
                if isOurs { close(descriptor) }
                descriptor = -1
                return
            }
        }
    }
}
