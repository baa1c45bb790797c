// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A file, or a part of one, to be sent as the body of a request.
///
/// Its length is fixed when it is made. A file that is shorter or was changed by the time it is sent is an error of the
/// transfer, never a body that is cut or filled up.
public struct FileRegion: Sendable, Hashable {
    /// The file.
    public let url: URL
    /// The first byte.
    public let offset: Int64
    /// How many bytes.
    public let length: Int64
    /// What the system told of the file when the region was made.
    private let status: FileRegionStatus

    /// Takes the whole file from `offset` on, or `length` bytes of it.
    ///
    /// It looks at the file's size and date, and does not open it.
    public init(_ url: URL, offset: Int64 = 0, length: Int64? = nil) throws(NetworkError) {
        func refusal(_ reason: String) -> NetworkError {
            NetworkError(code: .bodyUnreadable, phase: .checking, message: "\(url.path) cannot be sent: \(reason)")
        }
        guard url.isFileURL else { throw refusal("it is the URL of no file. Make it with URL(fileURLWithPath:).") }
        guard let status = FileRegionStatus(path: url.path) else {
            throw refusal("it does not exist or cannot be looked at. Check the path.")
        }
        guard status.isRegular else { throw refusal("it is no plain file. Send it as a stream.") }
        guard offset >= 0, offset <= status.size, (length ?? 0) >= 0, (length ?? 0) <= status.size - offset else {
            throw refusal("the part begins or ends outside of it, for it has \(status.size) bytes.")
        }
        self.url = url
        self.offset = offset
        self.length = length ?? status.size - offset
        self.status = status
    }
}

extension FileRegion {
    /// Whether it is all of the file, as that is now.
    var isWhole: Bool { offset == 0 && FileRegionStatus(path: url.path)?.size == length }

    /// Whether that is still the file, unchanged, of which the region was made.
    ///
    /// The time of its last change of status says no more to us: to read a file, to link it or to note something beside it
    /// may change that, too.
    func isPart(of present: FileRegionStatus) -> Bool { present == status }

    /// Sees whether it is still there and unchanged, by its name.
    func check() throws(NetworkError) {
        guard let present = FileRegionStatus(path: url.path) else {
            throw NetworkError(
                code: .bodyUnreadable, phase: .sending, message: "\(url.path) cannot be read. Check the file.")
        }
        guard isPart(of: present) else { throw changed }
    }

    var changed: NetworkError {
        NetworkError(
            code: .bodyChanged, phase: .sending,
            message: "\(url.path) was changed since the request was made. Make the request anew.")
    }
}
