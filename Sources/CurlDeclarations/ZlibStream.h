// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#ifndef OPERATIONKIT_ZLIB_STREAM_H
#define OPERATIONKIT_ZLIB_STREAM_H

#include <stddef.h>

/// The stream of zlib (`z_stream`), as described in its manual.
typedef struct {
    const unsigned char *input;
    unsigned int inputCount;
    unsigned long inputTotal;
    unsigned char *output;
    unsigned int outputCount;
    unsigned long outputTotal;
    const char *message;
    void *state;
    void *(*allocate)(void *, unsigned int, unsigned int);
    void (*release)(void *, void *);
    void *context;
    int kind;
    unsigned long checksum;
    unsigned long reserved;
} Stream;

/// Returns the library that contains the functions of zlib, which is preferably one that is already loaded.
void *OKZlibFind(void);

/// Processes as much of the input as fits.
///
/// `flush` applies only to a step that takes the whole input. The function returns 1 at the end of the stream, 0 before
/// the end, or -1 if the bytes are damaged.
int OKZlibStep(Stream *stream, int (*step)(Stream *, int), int flush, const void *input, size_t count, size_t *used,
               void *output, size_t capacity, size_t *made);

#endif
