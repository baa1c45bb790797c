// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if defined(__linux__)

#define _GNU_SOURCE
#include "CurlCompression.h"
#include "ZlibStream.h"

#include <dlfcn.h>
#include <stdlib.h>

struct OKInflater {
    Stream stream;
};

static int (*begin)(Stream *, int, const char *, int);
static int (*step)(Stream *, int);
static int (*reset)(Stream *);
static int (*end)(Stream *);

bool OKInflateLoad(void) {
    void *library = OKZlibFind();
    *(void **)&begin = dlsym(library, "inflateInit2_");
    *(void **)&step = dlsym(library, "inflate");
    *(void **)&reset = dlsym(library, "inflateReset");
    *(void **)&end = dlsym(library, "inflateEnd");
    return begin != NULL && step != NULL && reset != NULL && end != NULL;
}

OKInflater *OKInflateMake(int windowBits) {
    OKInflater *inflater = calloc(1, sizeof *inflater);
    if (inflater == NULL) return NULL;
    // zlib compares only the first digit of the version.
    if (begin(&inflater->stream, windowBits, "1.2.0", (int)sizeof(Stream)) == 0) return inflater;
    free(inflater);
    return NULL;
}

void OKInflateFree(OKInflater *inflater) {
    end(&inflater->stream);
    free(inflater);
}

bool OKInflateReset(OKInflater *inflater) { return reset(&inflater->stream) == 0; }

int OKInflate(OKInflater *inflater, const void *input, size_t count, size_t *used, void *output, size_t capacity,
              size_t *made) {
    return OKZlibStep(&inflater->stream, step, 0, input, count, used, output, capacity, made);
}

#endif
