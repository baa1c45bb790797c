// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// Compression and decompression with the zlib that libcurl has loaded.

#ifndef OPERATIONKIT_CURL_COMPRESSION_H
#define OPERATIONKIT_CURL_COMPRESSION_H

#if defined(__linux__)

#include <stdbool.h>
#include <stddef.h>

typedef struct OKInflater OKInflater;

/// Finds zlib, and returns false if there is none.
///
/// Do not call this function from several threads at the same time.
bool OKInflateLoad(void);

/// Creates a stream, or returns NULL if there is no memory left.
///
/// `windowBits` is 31 for gzip, 15 for zlib, or -15 for raw deflate data.
OKInflater *OKInflateMake(int windowBits);

void OKInflateFree(OKInflater *stream);

/// Begins again with the next member of the stream.
bool OKInflateReset(OKInflater *stream);

/// Decompresses bytes, and returns 1 at the end of the stream, 0 before the end, or -1 if the bytes are damaged.
int OKInflate(OKInflater *stream, const void *input, size_t count, size_t *used, void *output, size_t capacity,
              size_t *made);

typedef struct OKDeflater OKDeflater;

/// Finds the functions that compress, and returns false if there are none.
///
/// Do not call this function from several threads at the same time.
bool OKDeflateLoad(void);

/// Creates a stream that produces gzip data, or returns NULL if there is no memory left.
OKDeflater *OKDeflateMake(void);

void OKDeflateFree(OKDeflater *stream);

/// Compresses bytes, and ends the stream after the input if `isLast` is true.
///
/// The function returns 1 when all output was produced, 0 before that, or -1 for a failure.
int OKDeflate(OKDeflater *stream, const void *input, size_t count, bool isLast, size_t *used, void *output,
              size_t capacity, size_t *made);

#endif
#endif
