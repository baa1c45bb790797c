// Our declarations of Compression: the stream interface of C.
// https://developer.apple.com/documentation/compression

#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

// https://developer.apple.com/documentation/compression/compression_algorithm
// The enumerations are plain C: their constants are imported as global values, with an unsigned raw value.
typedef enum {
    COMPRESSION_LZ4 = 0x100,
    COMPRESSION_ZLIB = 0x205,
    COMPRESSION_LZMA = 0x306,
    COMPRESSION_LZ4_RAW = 0x101,
    COMPRESSION_BROTLI = 0xB02,
    COMPRESSION_LZFSE = 0x801,
    COMPRESSION_LZBITMAP = 0x702,
} compression_algorithm;

// https://developer.apple.com/documentation/compression/compression_stream
typedef struct {
    uint8_t *dst_ptr;
    size_t dst_size;
    const uint8_t *src_ptr;
    size_t src_size;
    void *_Nullable state;
} compression_stream;

// https://developer.apple.com/documentation/compression/compression_stream_operation
typedef enum {
    COMPRESSION_STREAM_ENCODE = 0,
    COMPRESSION_STREAM_DECODE = 1,
} compression_stream_operation;

// https://developer.apple.com/documentation/compression/compression_stream_flags
typedef enum {
    COMPRESSION_STREAM_FINALIZE = 0x0001,
} compression_stream_flags;

// https://developer.apple.com/documentation/compression/compression_status
typedef enum {
    COMPRESSION_STATUS_OK = 0,
    COMPRESSION_STATUS_ERROR = -1,
    COMPRESSION_STATUS_END = 1,
} compression_status;

// https://developer.apple.com/documentation/compression/compression_stream_init(_:_:_:)
extern compression_status compression_stream_init(
    compression_stream *stream, compression_stream_operation operation, compression_algorithm algorithm);
// https://developer.apple.com/documentation/compression/compression_stream_process(_:_:)
extern compression_status compression_stream_process(compression_stream *stream, int flags);
// https://developer.apple.com/documentation/compression/compression_stream_destroy(_:)
extern compression_status compression_stream_destroy(compression_stream *stream);

#pragma clang assume_nonnull end
