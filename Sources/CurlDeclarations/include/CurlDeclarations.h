// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What we use of libcurl 4, written down from its public documentation, and the table through which it is called.
// Nothing here needs libcurl's headers, and nothing links with it: the functions are looked for in the running process.

#ifndef OPERATIONKIT_CURL_DECLARATIONS_H
#define OPERATIONKIT_CURL_DECLARATIONS_H

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

/// The beginning of what the library tells of itself (`curl_version_info_data`).
typedef struct {
    int age;
    const char *version;
    unsigned int number;
    const char *host;
    int features;
    const char *tlsVersion;
} OKCurlVersion;

/// An address that a socket is to be opened for (`struct curl_sockaddr`).
typedef struct {
    int family;
    int type;
    int protocol;
    unsigned int length;
    struct sockaddr address;
} OKCurlAddress;

/// Bytes that an option takes (`struct curl_blob`).
typedef struct {
    void *data;
    size_t length;
    unsigned int flags;
} OKCurlBlob;

enum { OKCurlBlobIsCopied = 1, OKCurlMessageDone = 1, OKCurlGlobalAll = 3, OKCurlVersionAge = 0 };

// Features.
enum {
    OKCurlFeatureIPv6 = 1 << 0,
    OKCurlFeatureTLS = 1 << 2,
    OKCurlFeatureGzip = 1 << 3,
    OKCurlFeatureAsynchronousNames = 1 << 7,
    OKCurlFeatureHTTP2 = 1 << 16,
    OKCurlFeatureUnixSockets = 1 << 19,
    OKCurlFeatureBrotli = 1 << 23,
    OKCurlFeatureZstd = 1 << 26
};

// Options of a transfer: numbers below 10000 take a long, below 20000 a pointer, below 30000 a function,
// below 40000 a 64-bit number, and the rest bytes.
enum {
    OKCurlOptionUploadSize = 30115,
    OKCurlOptionPostSize = 30120,
    OKCurlOptionBufferSize = 98,
    OKCurlOptionCAData = 40309,
    OKCurlOptionCAFile = 10065,
    OKCurlOptionCAFolder = 10097,
    OKCurlOptionClientCertificate = 10025,
    OKCurlOptionClientCertificateKind = 10086,
    OKCurlOptionClientKey = 10087,
    OKCurlOptionClientKeyPassword = 10026,
    OKCurlOptionCloseSocketData = 10209,
    OKCurlOptionCloseSocketFunction = 20208,
    OKCurlOptionConnectTimeoutMilliseconds = 156,
    OKCurlOptionConnectTo = 10243,
    OKCurlOptionErrorBuffer = 10010,
    OKCurlOptionExpectTimeoutMilliseconds = 227,
    OKCurlOptionFreshConnect = 74,
    OKCurlOptionForbidReuse = 75,
    OKCurlOptionGet = 80,
    OKCurlOptionHeaderData = 10029,
    OKCurlOptionHeaderFunction = 20079,
    OKCurlOptionHeaders = 10023,
    OKCurlOptionHTTPVersion = 84,
    OKCurlOptionLookupData = 10273,
    OKCurlOptionLookupFunction = 20272,
    OKCurlOptionMaximumIdleAge = 288,
    OKCurlOptionMethod = 10036,
    OKCurlOptionNoBody = 44,
    OKCurlOptionNoProxy = 10177,
    OKCurlOptionNoSignals = 99,
    OKCurlOptionOpenSocketData = 10164,
    OKCurlOptionOpenSocketFunction = 20163,
    OKCurlOptionPathAsIs = 234,
    OKCurlOptionPinnedKeys = 10230,
    OKCurlOptionPost = 47,
    OKCurlOptionPostData = 10015,
    OKCurlOptionPreRequestData = 10313,
    OKCurlOptionPreRequestFunction = 20312,
    OKCurlOptionPrivate = 10103,
    OKCurlOptionProtocols = 181,
    OKCurlOptionProxy = 10004,
    OKCurlOptionProxyCAData = 40310,
    OKCurlOptionProxyCAFile = 10246,
    OKCurlOptionProxyCAFolder = 10247,
    OKCurlOptionProxyPassword = 10176,
    OKCurlOptionProxyTLSVersion = 250,
    OKCurlOptionProxyUser = 10175,
    OKCurlOptionQuickExit = 322,
    OKCurlOptionReadData = 10009,
    OKCurlOptionReadFunction = 20012,
    OKCurlOptionSeekData = 10168,
    OKCurlOptionSeekFunction = 20167,
    OKCurlOptionStreamWeight = 239,
    OKCurlOptionSuppressConnectHeaders = 265,
    OKCurlOptionTLSVersion = 32,
    OKCurlOptionUnixSocketPath = 10231,
    OKCurlOptionUpload = 46,
    OKCurlOptionURL = 10002,
    OKCurlOptionVerifyHost = 81,
    OKCurlOptionVerifyPeer = 64,
    OKCurlOptionWaitForMultiplexing = 237,
    OKCurlOptionWriteData = 10001,
    OKCurlOptionWriteFunction = 20011
};

// Options of a multi handle.
enum {
    OKCurlMultiOptionSocketFunction = 20001,
    OKCurlMultiOptionSocketData = 10002,
    OKCurlMultiOptionMultiplexing = 3,
    OKCurlMultiOptionTimerFunction = 20004,
    OKCurlMultiOptionTimerData = 10005,
    OKCurlMultiOptionMaximumIdleConnections = 6,
    OKCurlMultiOptionMaximumHostConnections = 7,
    OKCurlMultiOptionMaximumStreams = 16,
    OKCurlMultiOptionMaximumConnections = 13
};

// What a transfer can be asked: the number says the type.
enum {
    OKCurlInfoHTTPVersion = 0x200000 + 46,
    OKCurlInfoNewConnections = 0x200000 + 26,
    OKCurlInfoSystemErrorNumber = 0x200000 + 25,
    OKCurlInfoRemotePort = 0x200000 + 40,
    OKCurlInfoRemoteAddress = 0x100000 + 32,
    OKCurlInfoBytesReceived = 0x600000 + 8,
    OKCurlInfoBytesSent = 0x600000 + 7,
    OKCurlInfoNameTime = 0x600000 + 51,
    OKCurlInfoConnectTime = 0x600000 + 52,
    OKCurlInfoSecureTime = 0x600000 + 56,
    OKCurlInfoRequestTime = 0x600000 + 53,
    OKCurlInfoFirstByteTime = 0x600000 + 54,
    OKCurlInfoTotalTime = 0x600000 + 50
};

// Sockets.
enum {
    OKCurlSocketTimeout = -1,
    OKCurlPollIn = 1,
    OKCurlPollOut = 2,
    OKCurlPollRemove = 4,
    OKCurlSelectIn = 1,
    OKCurlSelectOut = 2,
    OKCurlSelectError = 4
};

// What callbacks answer, and pauses.
enum {
    OKCurlPauseReceiving = 1,
    OKCurlPauseSending = 4,
    OKCurlWritePause = 0x10000001,
    OKCurlReadAbort = 0x10000000,
    OKCurlReadPause = 0x10000001,
    OKCurlSeekDone = 0,
    OKCurlSeekFailed = 1,
    OKCurlPreRequestGo = 0,
    OKCurlPreRequestAbort = 1
};

/// Finds libcurl: in what is loaded, and if it is not, by its name. False if there is none, or a function is missing;
/// `problem` says which. Not from several threads at once.
bool OKCurlLoad(const char **problem);

// Compression and decompression, by the zlib that libcurl has loaded.

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

// What Swift's module of the C library leaves out: waiting for many sockets, and being woken from it.

enum { OKPollIn = 1, OKPollOut = 4, OKPollError = 8, OKPollHangUp = 16 };

typedef struct {
    int socket;
    unsigned int mask;
} OKPollEvent;

/// An object to wait with, closed in child processes that execute something; -1 if there is no descriptor left.
int OKPollMake(void);

/// Watches a socket for `mask`, or no longer if that is 0. `isWatched` says whether it was watched.
void OKPollWatch(int poll, int socket, unsigned int mask, bool isWatched);

/// Waits for at most `milliseconds`, or for ever if that is -1; gives the number of events.
int OKPollWait(int poll, OKPollEvent *events, int capacity, int milliseconds);

/// A counter that can be waited for.
int OKBellMake(void);

/// The port at our end of an IPv4 or IPv6 socket; 0 if there is none.
uint16_t OKLocalPort(int socket);

/// Names the calling thread.
void OKThreadSetName(const char *name);

/// How often this process was forked, as seen by the child: it is raised in each child.
int OKForkCount(void);

typedef size_t (*OKCurlDataCallback)(char *, size_t, size_t, void *);
typedef int (*OKCurlSocketCallback)(OKCurlEasy *, int, int, void *, void *);
typedef int (*OKCurlTimerCallback)(OKCurlMulti *, long, void *);
typedef int (*OKCurlSeekCallback)(void *, int64_t, int);
typedef int (*OKCurlOpenCallback)(void *, int, OKCurlAddress *);
typedef int (*OKCurlCloseCallback)(void *, int);
typedef int (*OKCurlLookupCallback)(void *, void *, void *);
typedef int (*OKCurlPreRequestCallback)(void *, char *, char *, int, int);

/// The functions as they were found.
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

/// Filled by `OKCurlLoad`, and not changed afterwards.
__attribute__((swift_attr("nonisolated(unsafe)"))) extern OKCurlFunctions OKCurl;

// Variadic functions cannot be called from Swift.

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

/// Makes a multi handle none of whose own descriptors reaches programs that this one starts; NULL if it cannot.
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
