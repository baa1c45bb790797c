// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// How a request's body is given to Foundation.
enum CarriedBody {
    /// What Foundation sends with the right length.
    enum Form {
        case none
        case data(Data)
        case file(FileRegion)
        case temporary(SpooledFile)
    }

    case ready(Form)
    /// Foundation would send it in chunks, and stop all sessions while it has nothing to give: it is written to a file
    /// first.
    case toBeWritten

    /// - Parameter onlyFiles: Whether bytes in memory are to be written to a file first, too.
    init(_ body: RequestBody, onlyFiles: Bool = false) {
        switch body.source {
        case .none: self = .ready(.none)
        case .data where onlyFiles: self = .toBeWritten
        case .data(let data): self = .ready(.data(data))
        case .file(let region):
            let isWhole = region.offset == 0 && FileRegionStatus(path: region.url.path)?.size == region.length
            self = isWhole ? .ready(.file(region)) : .toBeWritten
        case .stream: self = .toBeWritten
        }
    }
}

extension CarriedBody.Form {
    /// Sees whether the file is still the one that was meant: before it is sent, and afterwards.
    func check() throws(NetworkError) {
        guard case .file(let region) = self else { return }
        try region.check()
    }
}
