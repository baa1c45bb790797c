// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if defined(__linux__)

#define _GNU_SOURCE
#include "ZlibStream.h"

#include <dlfcn.h>
#include <limits.h>

void *OKZlibFind(void) {
    void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != NULL ? library : RTLD_DEFAULT;
}

int OKZlibStep(Stream *stream, int (*step)(Stream *, int), int flush, const void *input, size_t count, size_t *used,
               void *output, size_t capacity, size_t *made) {
    unsigned int inputCount = count < UINT_MAX ? (unsigned int)count : UINT_MAX;
    unsigned int outputCount = capacity < UINT_MAX ? (unsigned int)capacity : UINT_MAX;
    stream->input = input;
    stream->inputCount = inputCount;
    stream->output = output;
    stream->outputCount = outputCount;
    int status = step(stream, inputCount == count ? flush : 0);
    *used = inputCount - stream->inputCount;
    *made = outputCount - stream->outputCount;
    // 0 is a success, 1 is the end of the stream, and -5 means that there was no input or no room.
    return status == 1 ? 1 : status == 0 || status == -5 ? 0 : -1;
}

#endif
