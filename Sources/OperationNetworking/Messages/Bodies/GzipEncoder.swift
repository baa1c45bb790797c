// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// The maximum size of data that is compressed immediately, so that the compressed length is known in advance.
    private static let largestAtOnce = 1 << 20

    /// A Boolean value that indicates whether OperationKit can compress request bodies on this system.
    ///
    /// On Linux, the value is `true` if OperationKit can load the zlib library that libcurl uses.
    package static var canCompress: Bool { GzipEncoder.isAvailable }

    /// Returns a copy of the body that is compressed with gzip.
    ///
    /// ```swift
    /// let body = try RequestBody.json(["text": String(repeating: "a", count: 10_000)])
    ///     .gzipped()
    /// ```
    ///
    /// OperationKit adds a `Content-Encoding` header to the request, unless the request already has one. Check whether
    /// your server accepts compressed bodies, because many servers do not.
    ///
    /// The method compresses data of up to 1 MiB immediately. During the transfer, the session compresses files,
    /// streams and larger data, so the length of the compressed body is not known in advance. If the body is already
    /// compressed or is ``none``, the method returns the body without changes.
    ///
    /// You cannot compress individual parts of a ``MultipartForm``. Instead, compress the body that contains the whole
    /// form.
    ///
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/compressionUnavailable`` if OperationKit cannot
    ///   compress bodies on this system. On Linux, OperationKit needs the zlib library that libcurl uses.
    public func gzipped() throws(NetworkError) -> RequestBody {
        guard Self.canCompress else { throw .noCompression }
        // The header could not indicate that the body was compressed twice.
        if contentEncoding != nil { return self }
        switch source {
        case .none: return self
        case .data(let data) where data.count <= Self.largestAtOnce:
            return .data(try Self.compressed(self, data.count)).described(as: contentType, encoding: "gzip")
        default:
            return .stream(canBeSentAgain: canBeSentAgain) { try GzipProducer(self) }
                .described(as: contentType, encoding: "gzip")
        }
    }

    private static func compressed(_ body: RequestBody, _ count: Int) throws(NetworkError) -> Data {
        let producer = try GzipProducer(body)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var data = Data(capacity: count / 2)
        // Bytes in memory are always available, so the waker does nothing.
        let waker = BodyWaker {}
        do {
            while case .bytes(let made) = try buffer.withUnsafeMutableBytes({ room in
                try producer.produce(into: room, waker: waker)
            }) {
                data.append(contentsOf: buffer[..<made])
            }
        } catch {
            throw NetworkError(error, phase: .checking)
        }
        return data
    }
}

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    /// An encoder that compresses with gzip portion by portion, using the zlib that libcurl has loaded.
    final class GzipEncoder {
        /// Whether compression is available on this system.
        static let isAvailable = OKDeflateLoad()

        private let stream: OpaquePointer

        /// Creates an encoder, or returns `nil` if compression is not available.
        init?() {
            guard Self.isAvailable, let stream = OKDeflateMake() else { return nil }
            self.stream = stream
        }

        deinit { OKDeflateFree(stream) }

        /// Compresses bytes into the output as far as there is space, or returns `nil` if the compression failed.
        ///
        /// After the last input, call the method until it reports the end.
        func encode(
            _ input: UnsafeRawBufferPointer, isLast: Bool, into output: UnsafeMutableRawBufferPointer
        ) -> (used: Int, made: Int, hasEnded: Bool)? {
            var (used, made) = (0, 0)
            let status = OKDeflate(
                stream, input.baseAddress, input.count, isLast, &used, output.baseAddress, output.count, &made)
            return status < 0 ? nil : (used, made, status == 1)
        }
    }
#elseif canImport(Compression)
    import Compression
    import OperationCore

    /// An encoder that compresses with gzip portion by portion.
    ///
    /// Apple's library creates the raw stream, and this class adds the gzip header and trailer.
    final class GzipEncoder {
        static let isAvailable = true

        private let stream: UnsafeMutablePointer<compression_stream>
        /// The bytes to write next: the gzip header, and at the end the checksum and the length.
        private var frame: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]
        private var checksum = CRC32()
        private var count: UInt32 = 0
        private var isFramed = false

        init?() {
            let stream = UnsafeMutablePointer<compression_stream>.allocate(capacity: 1)
            guard compression_stream_init(stream, COMPRESSION_STREAM_ENCODE, COMPRESSION_ZLIB) == COMPRESSION_STATUS_OK
            else {
                // `deinit` does not run, because the property has no value yet.
                stream.deallocate()
                return nil
            }
            self.stream = stream
        }

        deinit {
            compression_stream_destroy(stream)
            stream.deallocate()
        }

        func encode(
            _ input: UnsafeRawBufferPointer, isLast: Bool, into output: UnsafeMutableRawBufferPointer
        ) -> (used: Int, made: Int, hasEnded: Bool)? {
            guard let target = output.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
            if !frame.isEmpty {
                let made = min(frame.count, output.count)
                output.copyBytes(from: frame.prefix(made))
                frame.removeFirst(made)
                return (0, made, isFramed && frame.isEmpty)
            }
            var nothing: UInt8 = 0
            return withUnsafePointer(to: &nothing) { nothing in
                stream.pointee.src_ptr = input.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? nothing
                stream.pointee.src_size = input.count
                stream.pointee.dst_ptr = target
                stream.pointee.dst_size = output.count
                let flags = isLast ? Int32(COMPRESSION_STREAM_FINALIZE.rawValue) : 0
                let status = compression_stream_process(stream, flags)
                guard status != COMPRESSION_STATUS_ERROR else { return nil }
                let used = input.count - stream.pointee.src_size
                checksum.update(UnsafeRawBufferPointer(rebasing: input[..<used]))
                count &+= UInt32(truncatingIfNeeded: used)
                if status == COMPRESSION_STATUS_END {
                    isFramed = true
                    frame = checksum.finish().reversed() + withUnsafeBytes(of: count.littleEndian) { Array($0) }
                }
                return (used, output.count - stream.pointee.dst_size, false)
            }
        }
    }
#endif

/// A producer that compresses another body while it is sent.
final class GzipProducer: BodyProducer {
    private static let portion = 32 << 10

    private let body: RequestBody
    // Sendable: two threads never call a producer at the same time.
    private nonisolated(unsafe) let encoder: GzipEncoder
    private nonisolated(unsafe) var reader: BodyReader?
    private nonisolated(unsafe) var input = [UInt8](repeating: 0, count: GzipProducer.portion)
    /// The range of the input that was read but is not yet compressed.
    private nonisolated(unsafe) var waiting = 0..<0
    private nonisolated(unsafe) var isAtEnd = false
    private nonisolated(unsafe) var hasEnded = false

    init(_ body: RequestBody) throws(NetworkError) {
        guard let encoder = GzipEncoder() else { throw .noCompression }
        self.encoder = encoder
        self.body = body
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        while !hasEnded {
            if waiting.isEmpty, !isAtEnd {
                switch try read(waker) {
                case .bytes(let count): waiting = 0..<count
                case .notYet: return .notYet
                case .end: isAtEnd = true
                }
            }
            let made = try encode(into: buffer)
            if made > 0 { return .bytes(made) }
        }
        return .end
    }

    private func read(_ waker: BodyWaker) throws(NetworkError) -> BodyPortion {
        let reader = try openedReader(waker)
        var result = Result<BodyPortion, NetworkError>.success(.end)
        input.withUnsafeMutableBytes { room in
            do throws(NetworkError) { result = .success(try reader.read(into: room)) } catch {
                result = .failure(error)
            }
        }
        return try result.get()
    }

    private func openedReader(_ waker: BodyWaker) throws(NetworkError) -> BodyReader {
        if let reader { return reader }
        let opened = try BodyReader(body, waker: waker)
        reader = opened
        return opened
    }

    private func encode(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int {
        let step = input.withUnsafeBytes { bytes in
            encoder.encode(UnsafeRawBufferPointer(rebasing: bytes[waiting]), isLast: isAtEnd, into: buffer)
        }
        guard let step else { throw .noCompression }
        waiting = waiting.lowerBound + step.used..<waiting.upperBound
        hasEnded = step.hasEnded
        return step.made
    }
}

extension NetworkError {
    static let noCompression = NetworkError(
        code: .compressionUnavailable, phase: .checking,
        message: "OperationKit cannot load zlib to compress the body. Install zlib, or send the body uncompressed.")
}
