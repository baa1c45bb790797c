// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// The parts of libcurl 4 that this package uses, written from its public documentation, and the table of its functions.
// Nothing here needs the headers of libcurl or links with it. The functions are looked up in the running process.

#ifndef OPERATIONKIT_CURL_DECLARATIONS_H
#define OPERATIONKIT_CURL_DECLARATIONS_H

#include "CurlCompression.h"
#include "CurlNumbers.h"
#include "CurlWaiting.h"

#if defined(__linux__)

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct OKCurlEasy OKCurlEasy;
typedef struct OKCurlMulti OKCurlMulti;

/// A list of strings (`struct curl_slist`).
typedef struct OKCurlList {
    char *text;
    struct OKCurlList *next;
} OKCurlList;

/// A message of the multi interface (`CURLMsg`).
typedef struct {
    int kind;
    OKCurlEasy *easy;
    union {
        void *whatever;
        int result;
    } data;
} OKCurlMessage;

/// The beginning of the information about the library (`curl_version_info_data`).
typedef struct {
    int age;
    const char *version;
    unsigned int number;
    const char *host;
    int features;
    const char *tlsVersion;
} OKCurlVersion;

/// The address for which a socket is opened (`struct curl_sockaddr`).
typedef struct {
    int family;
    int type;
    int protocol;
    unsigned int length;
    struct sockaddr address;
} OKCurlAddress;

/// The bytes that an option takes (`struct curl_blob`).
typedef struct {
    void *data;
    size_t length;
    unsigned int flags;
} OKCurlBlob;

/// Finds libcurl by the name of its file, whether or not the file is loaded, or in the program itself.
///
/// The program itself is searched only if `mayBeLinked` is true. The function returns false if libcurl or one of its
/// functions is missing, whose name is then in `problem`. Do not call it from several threads at the same time.
bool OKCurlLoad(const char *file, bool mayBeLinked, const char **problem);

typedef size_t (*OKCurlDataCallback)(char *, size_t, size_t, void *);
typedef int (*OKCurlSocketCallback)(OKCurlEasy *, int, int, void *, void *);
typedef int (*OKCurlTimerCallback)(OKCurlMulti *, long, void *);
typedef int (*OKCurlSeekCallback)(void *, int64_t, int);
typedef int (*OKCurlOpenCallback)(void *, int, OKCurlAddress *);
typedef int (*OKCurlCloseCallback)(void *, int);
typedef int (*OKCurlLookupCallback)(void *, void *, void *);
typedef int (*OKCurlPreRequestCallback)(void *, char *, char *, int, int);
typedef int (*OKCurlReportCallback)(OKCurlEasy *, int, char *, size_t, void *);

/// The functions of libcurl.
typedef struct {
    int (*globalInit)(long);
    const OKCurlVersion *(*versionInfo)(int);
    OKCurlEasy *(*easyInit)(void);
    void (*easyCleanup)(OKCurlEasy *);
    int (*easySetOption)(OKCurlEasy *, int, ...);
    int (*easyGetInfo)(OKCurlEasy *, int, ...);
    int (*easyPause)(OKCurlEasy *, int);
    const char *(*easyErrorText)(int);
    OKCurlMulti *(*multiInit)(void);
    int (*multiCleanup)(OKCurlMulti *);
    int (*multiAdd)(OKCurlMulti *, OKCurlEasy *);
    int (*multiRemove)(OKCurlMulti *, OKCurlEasy *);
    int (*multiSetOption)(OKCurlMulti *, int, ...);
    int (*multiAction)(OKCurlMulti *, int, int, int *);
    OKCurlMessage *(*multiReadMessage)(OKCurlMulti *, int *);
    const char *(*multiErrorText)(int);
} OKCurlFunctions;

/// The table that `OKCurlLoad` fills, and that does not change afterwards.
__attribute__((swift_attr("nonisolated(unsafe)"))) extern OKCurlFunctions OKCurl;

// Swift cannot call variadic functions.

static inline int OKCurlSetLong(OKCurlEasy *easy, int option, long value) {
    return OKCurl.easySetOption(easy, option, value);
}

static inline int OKCurlSetSize(OKCurlEasy *easy, int option, int64_t value) {
    return OKCurl.easySetOption(easy, option, value);
}

static inline int OKCurlSetPointer(OKCurlEasy *easy, int option, const void *value) {
    return OKCurl.easySetOption(easy, option, value);
}

static inline int OKCurlSetData(OKCurlEasy *easy, int option, OKCurlDataCallback value) {
    return OKCurl.easySetOption(easy, option, value);
}

static inline int OKCurlSetSeek(OKCurlEasy *easy, OKCurlSeekCallback value) {
    return OKCurl.easySetOption(easy, OKCurlOptionSeekFunction, value);
}

static inline int OKCurlSetOpen(OKCurlEasy *easy, OKCurlOpenCallback value) {
    return OKCurl.easySetOption(easy, OKCurlOptionOpenSocketFunction, value);
}

static inline int OKCurlSetClose(OKCurlEasy *easy, OKCurlCloseCallback value) {
    return OKCurl.easySetOption(easy, OKCurlOptionCloseSocketFunction, value);
}

static inline int OKCurlSetLookup(OKCurlEasy *easy, OKCurlLookupCallback value) {
    return OKCurl.easySetOption(easy, OKCurlOptionLookupFunction, value);
}

static inline int OKCurlSetPreRequest(OKCurlEasy *easy, OKCurlPreRequestCallback value) {
    return OKCurl.easySetOption(easy, OKCurlOptionPreRequestFunction, value);
}

static inline int OKCurlSetReport(OKCurlEasy *easy, OKCurlReportCallback value) {
    return OKCurl.easySetOption(easy, OKCurlOptionDebugFunction, value);
}

static inline int OKCurlGetLong(OKCurlEasy *easy, int info, long *value) {
    return OKCurl.easyGetInfo(easy, info, value);
}

static inline int OKCurlGetSize(OKCurlEasy *easy, int info, int64_t *value) {
    return OKCurl.easyGetInfo(easy, info, value);
}

static inline int OKCurlGetText(OKCurlEasy *easy, int info, const char **value) {
    return OKCurl.easyGetInfo(easy, info, value);
}

static inline int OKCurlGetPrivate(OKCurlEasy *easy, void **value) {
    return OKCurl.easyGetInfo(easy, 0x100000 + 21, value);
}

/// Creates a multi handle whose descriptors are not inherited by programs that this process starts.
///
/// The function returns NULL if there is no multi handle.
OKCurlMulti *OKCurlMultiMake(void);

static inline int OKCurlMultiSetLong(OKCurlMulti *multi, int option, long value) {
    return OKCurl.multiSetOption(multi, option, value);
}

static inline int OKCurlMultiSetPointer(OKCurlMulti *multi, int option, const void *value) {
    return OKCurl.multiSetOption(multi, option, value);
}

static inline int OKCurlMultiSetSocket(OKCurlMulti *multi, OKCurlSocketCallback value) {
    return OKCurl.multiSetOption(multi, OKCurlMultiOptionSocketFunction, value);
}

static inline int OKCurlMultiSetTimer(OKCurlMulti *multi, OKCurlTimerCallback value) {
    return OKCurl.multiSetOption(multi, OKCurlMultiOptionTimerFunction, value);
}

#endif
#endif
