// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Reads a file into memory.
///
/// ```swift
/// let read = FileReadOperation(URL(fileURLWithPath: "/etc/hostname"))
/// print(try await read.run().count)
/// ```
///
/// A symbolic link is followed. Files without a length of their own, such as those in `/proc` and devices, are read to
/// their end or to the options' `maximumSize`; pipes and sockets are refused.
public final class FileReadOperation: FileOperation<Data>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The file.
    public let url: URL
    /// What of it is read.
    public let options: FileReadOptions

    /// Makes an operation that reads a file.
    public init(_ url: URL, options: FileReadOptions = FileReadOptions()) {
        self.url = url
        self.options = options
        super.init()
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> Data {
        let address = try FileAddress(url, for: .reading)
        let place = FilePlace(.reading, address.description)
        var source = try FileSource(FolderEntry(address.path), at: place, work: work)
        if let range = options.range { try source.restrict(to: range) }
        let (expected, limit) = (source.expectedBytes, max(options.maximumSize, 0))
        work.expect(bytes: expected)
        var data = Data()
        if let expected {
            guard expected <= limit else { throw .failed(place.error(.tooLarge)) }
            // The length of a file may be wrong, so memory is reserved for a gibibyte at most. Longer data grows as it
            // is read.
            data.reserveCapacity(Int(min(expected, 1 << 30)))
        }
        while let chunk = try source.next() {
            guard chunk.count <= limit - data.count else { throw .failed(place.error(.tooLarge)) }
            data.append(chunk.bindMemory(to: UInt8.self))
            work.advance(bytes: chunk.count)
        }
        return data
    }
}
