// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// The numbers of libcurl 4 that this package uses, written from its public documentation.

#ifndef OPERATIONKIT_CURL_NUMBERS_H
#define OPERATIONKIT_CURL_NUMBERS_H

#if defined(__linux__)

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

// Options of a transfer. Numbers below 10000 take a long, below 20000 a pointer, below 30000 a function, below 40000 a
// 64-bit number, and all others bytes.
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
    OKCurlOptionDebugData = 10095,
    OKCurlOptionDebugFunction = 20094,
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
    OKCurlOptionProxyCredentials = 10006,
    OKCurlOptionProxyTLSVersion = 250,
    OKCurlOptionQuickExit = 322,
    OKCurlOptionReadData = 10009,
    OKCurlOptionReadFunction = 20012,
    OKCurlOptionSeekData = 10168,
    OKCurlOptionSeekFunction = 20167,
    OKCurlOptionStreamWeight = 239,
    OKCurlOptionSuppressConnectHeaders = 265,
    OKCurlOptionTCPKeepAlive = 213,
    OKCurlOptionTCPKeepAliveIdle = 214,
    OKCurlOptionTCPKeepAliveInterval = 215,
    OKCurlOptionTLSVersion = 32,
    OKCurlOptionUnixSocketPath = 10231,
    OKCurlOptionUpload = 46,
    OKCurlOptionURL = 10002,
    OKCurlOptionVerbose = 41,
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

// Information about a transfer. The number determines the type.
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
    OKCurlInfoRedirectTime = 0x600000 + 55,
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

// The return values of callbacks, the flags of pauses, and the kind of a debug report that is text.
enum {
    OKCurlReportIsText = 0,
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

#endif
#endif
