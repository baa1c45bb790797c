// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An event in the log for programs, which contains one event per line.
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
