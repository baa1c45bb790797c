// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a session tells of a task before its end, and may have to keep for a while.
package enum TaskEvent {
    case informational(ResponseHead)
    case head(ResponseHead)
    case bytes(Data)
    /// A body in a file, which is read as the receiver takes it.
    case file(SpooledFile.Reader)
    case trailers(HeaderFields)
    case metrics(TransferMetrics)

    /// How many bytes of a body it keeps.
    var byteCount: Int {
        if case .bytes(let data) = self { data.count } else { 0 }
    }
}
