// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#ifndef OPERATIONKIT_ZLIB_STREAM_H
#define OPERATIONKIT_ZLIB_STREAM_H

/// The stream of zlib's interface (`z_stream`), as its manual has it.
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

#endif
