// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if defined(__linux__)

#define _GNU_SOURCE
#include "CurlCompression.h"
#include "ZlibStream.h"

#include <dlfcn.h>
#include <stdlib.h>

struct OKDeflater {
    Stream stream;
};

static int (*begin)(Stream *, int, int, int, int, int, const char *, int);
static int (*step)(Stream *, int);
static int (*end)(Stream *);

bool OKDeflateLoad(void) {
    void *library = OKZlibFind();
    *(void **)&begin = dlsym(library, "deflateInit2_");
    *(void **)&step = dlsym(library, "deflate");
    *(void **)&end = dlsym(library, "deflateEnd");
    return begin != NULL && step != NULL && end != NULL;
}

OKDeflater *OKDeflateMake(void) {
    OKDeflater *deflater = calloc(1, sizeof *deflater);
    if (deflater == NULL) return NULL;
    // The default level, the only method, gzip, the default amount of memory, the default strategy. zlib compares only
    // the first digit of the version.
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
    // 4 finishes the stream, 0 continues it.
    return OKZlibStep(&deflater->stream, step, isLast ? 4 : 0, input, count, used, output, capacity, made);
}

#endif
