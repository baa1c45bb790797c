// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// The names are those of the format, HAR 1.2.

/// The whole of an archive.
struct ArchiveLog: Codable {
    struct Creator: Codable {
        var name = "OperationKit"
        var version = "1.0"
    }

    var version = "1.2"
    var creator = Creator()
    /// There are none, and readers expect the list.
    var pages: [String] = []
    var entries: [ArchiveEntry]
    var comment: String?
}

/// One request and its response.
struct ArchiveEntry: Codable, Sendable {
    struct Pair: Codable, Sendable {
        let name: String
        let value: String
    }

    struct Cookie: Codable, Sendable {
        let name: String
        let value: String
        var path: String?
        var domain: String?
        var expires: String?
        var httpOnly: Bool?
        var secure: Bool?
    }

    struct PostData: Codable, Sendable {
        let mimeType: String
        /// The fields of a form, in the place of a text.
        var params: [Pair]?
        var text: String?
        var comment: String?

        var bytes: Int {
            (text?.utf8.count ?? 0) + (params ?? []).reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        }
    }

    struct Request: Codable, Sendable {
        let method: String
        let url: String
        private(set) var httpVersion: String
        let cookies: [Cookie]
        let headers: [Pair]
        let queryString: [Pair]
        var postData: PostData?
        let headersSize: Int64
        let bodySize: Int64

        func sent(as version: String) -> Request {
            var request = self
            request.httpVersion = version
            return request
        }
    }

    struct Content: Codable, Sendable {
        let size: Int64
        var compression: Int64?
        let mimeType: String
        var text: String?
        var encoding: String?
        var comment: String?
    }

    struct Response: Codable, Sendable {
        let status: Int
        let statusText: String
        let httpVersion: String
        let cookies: [Cookie]
        let headers: [Pair]
        var content: Content
        let redirectURL: String
        let headersSize: Int64
        let bodySize: Int64
        /// What other writers of archives say of a request that got no response.
        var _error: String?
    }

    struct Cache: Codable, Sendable {}

    let startedDateTime: String
    let time: Double
    var request: Request
    var response: Response
    var cache = Cache()
    let timings: ArchiveTimings
    let serverIPAddress: String?
    let comment: String?

    /// How many bytes its bodies take.
    var bodyBytes: Int { (request.postData?.bytes ?? 0) + (response.content.text?.utf8.count ?? 0) }

    /// The same without its bodies, which are too large.
    var withoutBodies: ArchiveEntry {
        var entry = self
        let comment = "left out: larger than all that is kept of bodies"
        if let data = request.postData, data.bytes > 0 {
            entry.request.postData = PostData(mimeType: data.mimeType, text: "", comment: comment)
        }
        if response.content.text != nil {
            (entry.response.content.text, entry.response.content.encoding) = (nil, nil)
            entry.response.content.comment = comment
        }
        return entry
    }
}
