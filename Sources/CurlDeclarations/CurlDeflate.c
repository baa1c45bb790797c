// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if defined(__linux__)

#define _GNU_SOURCE
#include "CurlCompression.h"
#include "ZlibStream.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

struct OKDeflater {
    Stream stream;
};

static int (*begin)(Stream *, int, int, int, int, int, const char *, int);
static int (*step)(Stream *, int);
static int (*end)(Stream *);

bool OKDeflateLoad(void) {
    void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) library = RTLD_DEFAULT;
    *(void **)&begin = dlsym(library, "deflateInit2_");
    *(void **)&step = dlsym(library, "deflate");
    *(void **)&end = dlsym(library, "deflateEnd");
    return begin != NULL && step != NULL && end != NULL;
}

OKDeflater *OKDeflateMake(void) {
    OKDeflater *deflater = calloc(1, sizeof *deflater);
    if (deflater == NULL) return NULL;
    // The level of all, the only method, gzip, as much memory as usual, no strategy. Only the first digit of the version
    // is compared.
    if (begin(&deflater->stream, -1, 8, 31, 8, 0, "1.2.0", (int)sizeof(Stream)) == 0) return deflater;
    free(deflater);
    return NULL;
}

void OKDeflateFree(OKDeflater *deflater) {
    end(&deflater->stream);
    free(deflater);
}

int OKDeflate(OKDeflater *deflater, const void *input, size_t count, bool isLast, size_t *used, void *output,
              size_t capacity, size_t *made) {
    Stream *stream = &deflater->stream;
    unsigned int inputCount = count < UINT_MAX ? (unsigned int)count : UINT_MAX;
    unsigned int outputCount = capacity < UINT_MAX ? (unsigned int)capacity : UINT_MAX;
    stream->input = input;
    stream->inputCount = inputCount;
    stream->output = output;
    stream->outputCount = outputCount;
    // 4 ends the stream, 0 goes on.
    int status = step(stream, isLast && inputCount == count ? 4 : 0);
    *used = inputCount - stream->inputCount;
    *made = outputCount - stream->outputCount;
    // 0 goes on, 1 is the end, -5 is that nothing could be done for want of input or room.
    return status == 1 ? 1 : status == 0 || status == -5 ? 0 : -1;
}

#endif
