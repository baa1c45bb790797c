// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension AnyNetworkOperation {
    /// The share of the transfer that is done: of the request's body if it has one, else of the response's; nil while
    /// its length is not known.
    ///
    /// So a group of downloads shows how far they are together: see `MeasuredOperation`.
    public var completedFraction: Double? {
        let (upload, download) = (uploadProgress, downloadProgress)
        guard upload.completedBytes > 0 || upload.totalBytes ?? 0 > 0 else {
            return download.totalBytes ?? 0 > 0 ? download.fraction : nil
        }
        // The answer to it is a part of the work, if a small one.
        return upload.totalBytes.map { Double(upload.completedBytes) / (Double($0) + 1) }
    }
}

extension NetworkOperation: MeasuredOperation {}
