// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Compression and decompression, by the zlib that libcurl has loaded.

#ifndef OPERATIONKIT_CURL_COMPRESSION_H
#define OPERATIONKIT_CURL_COMPRESSION_H

#if defined(__linux__)

#include <stdbool.h>
#include <stddef.h>

typedef struct OKInflater OKInflater;

/// Finds zlib; false if there is none. Not from several threads at once.
bool OKInflateLoad(void);

/// A stream: 31 for gzip, 15 for zlib, -15 for bare deflate; NULL if there is no memory left.
OKInflater *OKInflateMake(int windowBits);

void OKInflateFree(OKInflater *stream);

/// Begins anew, with the next member.
bool OKInflateReset(OKInflater *stream);

/// Decompresses: 1 at the end of the stream, 0 before, -1 if the bytes are damaged.
int OKInflate(OKInflater *stream, const void *input, size_t count, size_t *used, void *output, size_t capacity,
              size_t *made);

typedef struct OKDeflater OKDeflater;

/// Finds what of zlib compresses; false if there is none. Not from several threads at once.
bool OKDeflateLoad(void);

/// A stream that makes gzip; NULL if there is no memory left.
OKDeflater *OKDeflateMake(void);

void OKDeflateFree(OKDeflater *stream);

/// Compresses, and ends the stream after the input if that is the last: 1 when all of it was given, 0 before, -1 on a
/// failure.
int OKDeflate(OKDeflater *stream, const void *input, size_t count, bool isLast, size_t *used, void *output,
              size_t capacity, size_t *made);

#endif
#endif
