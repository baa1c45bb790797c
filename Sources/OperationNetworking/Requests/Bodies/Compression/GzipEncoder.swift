// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    /// Compresses by gzip, portion by portion: by the zlib that libcurl has loaded.
    final class GzipEncoder {
        /// Whether anything can be compressed on this system.
        static let isAvailable = OKDeflateLoad()

        private let stream: OpaquePointer

        /// Nil if nothing can be compressed here.
        init?() {
            guard Self.isAvailable, let stream = OKDeflateMake() else { return nil }
            self.stream = stream
        }

        deinit { OKDeflateFree(stream) }

        /// Takes bytes, and gives as many as there is room for; nil if it failed.
        ///
        /// If they are the last ones it is called until it says that it has ended.
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

    /// Compresses by gzip, portion by portion: Apple's library makes the bare stream, and what stands around it is ours.
    final class GzipEncoder {
        static let isAvailable = true

        private let stream: UnsafeMutablePointer<compression_stream>
        /// What is to be given before anything else: the head, and in the end the checksum and the length.
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
