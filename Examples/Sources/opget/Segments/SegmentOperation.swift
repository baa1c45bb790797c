// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Why a file cannot be downloaded in segments as it was begun.
enum SegmentProblem: Error, Equatable {
    /// The server sends the whole, and nothing of the file is there that would be lost.
    case sendsWhole
    /// The server does not name the version of its parts, and nothing of the file is there that would be lost.
    case namesNoVersion
    /// It is another version than the one that was begun.
    case hasChanged
}

/// The request for one segment: each attempt asks for what is missing of it, and its bytes go to their place in the file.
final class SegmentOperation: NetworkOperation<Int64, Int64>, @unchecked Sendable {
    // Sendable: what changes is in the writer.

    /// The server sent the whole where a part was asked for, as a proxy does now and then: worth another attempt.
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

    /// Waits until all that came is in the file.
    func settled() async { await writer.settled() }

    override func adapt(_ request: NetworkRequest) async throws -> NetworkRequest {
        // What the last attempt received may be on its way to the file.
        await writer.settled()
        let missing = missing
        // An attempt may break off behind the last byte: then there is nothing to ask for, and whoever waits finds it.
        guard !missing.isEmpty else {
            throw NetworkError(code: .preparationFailed, phase: .checking, message: "The piece is already complete.")
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
            // What is there is never given up for a proxy that drops a field once.
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
        // It may send less than it was asked for, and is asked for the rest.
        let missing = missing
        guard range.bytes.lowerBound == missing.lowerBound, range.bytes.upperBound <= missing.upperBound else {
            throw NetworkError(
                code: Self.wholeFile, phase: .receiving,
                message: "The server sent a different part of the file than requested.")
        }
        return SegmentCollector(writer)
    }
}
