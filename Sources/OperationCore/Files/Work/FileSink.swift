// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A file that is being written.
struct FileSink {
    let work: FileWork
    let file: OpenFile
    let place: FilePlace
    /// Whether it may at times take nothing.
    var isDevice = false

    /// Writes all of the bytes, in as many calls as the system likes, and counts them as progress.
    func write(_ bytes: UnsafeRawBufferPointer) throws(FileInterruption) {
        var rest = bytes
        while !rest.isEmpty {
            let result = try work.patiently(isDevice ? file : nil, isWriting: true) { work.files.write(file, rest) }
            let written = try result.get(at: place)
            // A file that takes nothing, and says that this is no failure, would be written to for ever.
            guard written > 0 else { throw .failed(place.error(for: SystemError(EIO))) }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
            work.advance(bytes: written)
        }
    }

    /// Writes chunk by chunk, and looks before each whether the operation was cancelled.
    func write(_ data: Data) throws(FileInterruption) {
        var start = data.startIndex
        while start < data.endIndex {
            try work.checkCancellation()
            let end = data.index(start, offsetBy: FileWork.chunkSize, limitedBy: data.endIndex) ?? data.endIndex
            let result = data[start..<end].withUnsafeBytes { bytes in
                Result { () throws(FileInterruption) in try write(bytes) }
            }
            try result.get()
            start = end
        }
    }

    /// Brings what was written to the disk, if so wished, and closes the file.
    func finish(isDurable: Bool) throws(FileInterruption) {
        // After a failure the system may have forgotten what it did not write, and would claim success the next time:
        // no second try.
        if isDurable { try work.files.synchronize(file).get(at: place) }
        try work.files.close(file).get(at: place)
    }
}
