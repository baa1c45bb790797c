// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A reason why a download in segments cannot continue as planned.
enum SegmentProblem: Error, Equatable {
    /// The server sends the whole file instead of a segment, and opget has received no bytes that would be lost.
    case sendsWhole
    /// The server does not identify the version of a segment, and opget has received no bytes that would be lost.
    case namesNoVersion
    /// The file on the server has changed since the download began.
    case hasChanged
}

/// An operation for one segment, which writes received bytes to the file and requests only missing bytes in each
/// attempt.
final class SegmentOperation: NetworkOperation<Int64, Int64>, @unchecked Sendable {
    // Sendable: the mutable state is in the writer.

    /// The error code for a response that does not contain the requested segment, after which another attempt is
    /// useful.
    static let wholeFile = NetworkError.Code("wholeInsteadOfPart")

    private let writer: SegmentWriter
    private let file: SegmentedFile
    private let index: Int

    init(
        _ request: NetworkRequest, over session: ExchangeSession, file: SegmentedFile, index: Int,
        wrote: @escaping @Sendable () -> Void
    ) {
        self.file = file
        self.index = index
        writer = SegmentWriter(file, index, wrote: wrote)
        super.init(request: request, urlSession: session) { written, _ in written }
        responseRules.contentTypes = .any
    }

    private var missing: Range<Int64> {
        let span = file.metadata.spans[index]
        return span.start + file.written(index)..<span.end
    }

    /// Waits until all received bytes are written to the file.
    func settled() async { await writer.settled() }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
        // The bytes of the last attempt might not be written yet.
        await writer.settled()
        let missing = missing
        // If an attempt fails after the last byte, there are no bytes to request, and the caller detects the complete
        // segment.
        guard !missing.isEmpty else {
            throw NetworkError(code: .preparationFailed, phase: .checking, message: "The segment is already complete.")
        }
        var headers = request.headers
        headers["Accept-Encoding"] = "identity"
        headers["Range"] = "bytes=\(missing.lowerBound)-\(missing.upperBound - 1)"
        headers["If-Range"] = file.metadata.validator.field
        return try NetworkRequest(request.method, url: request.url, headers: headers, options: request.options)
    }

    override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Int64> {
        if file.metadata.validator.contradicts(head.headers) { throw SegmentProblem.hasChanged }
        guard head.status == 206, let range = SegmentRange(head.headers), !head.headers.contains("Content-Encoding")
        else {
            // Received bytes are kept, even if a proxy drops a header once.
            if file.writtenBytes == 0 { throw SegmentProblem.sendsWhole }
            throw NetworkError(
                code: Self.wholeFile, phase: .receiving,
                message: "The server did not send the missing part of the file.")
        }
        guard file.metadata.validator.isProven(by: head.headers) else {
            if file.writtenBytes == 0 { throw SegmentProblem.namesNoVersion }
            throw NetworkError(
                code: Self.wholeFile, phase: .receiving,
                message: "The server sent a part of the file without its version. Run opget with --fresh to start from "
                    + "the beginning.")
        }
        guard range.total == file.metadata.total else { throw SegmentProblem.hasChanged }
        // The server might send fewer bytes than requested. The next attempt then requests the rest.
        let missing = missing
        guard range.bytes.lowerBound == missing.lowerBound, range.bytes.upperBound <= missing.upperBound else {
            throw NetworkError(
                code: Self.wholeFile, phase: .receiving,
                message: "The server sent a different part of the file than requested.")
        }
        return SegmentCollector(writer)
    }
}
