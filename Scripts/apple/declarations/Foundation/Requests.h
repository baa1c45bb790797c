// Requests, responses, cookies and the cache.

NS_ASSUME_NONNULL_BEGIN

@class NSURLSessionTask, NSURLSessionDataTask;

// https://developer.apple.com/documentation/foundation/nsurlrequest/cachepolicy
typedef NS_ENUM(NSUInteger, NSURLRequestCachePolicy) {
    NSURLRequestUseProtocolCachePolicy = 0,
    NSURLRequestReloadIgnoringLocalCacheData = 1,
    NSURLRequestReloadIgnoringLocalAndRemoteCacheData = 4,
    NSURLRequestReloadIgnoringCacheData = NSURLRequestReloadIgnoringLocalCacheData,
    NSURLRequestReturnCacheDataElseLoad = 2,
    NSURLRequestReturnCacheDataDontLoad = 3,
    NSURLRequestReloadRevalidatingCacheData = 5
} NS_SWIFT_NAME(NSURLRequest.CachePolicy);

// https://developer.apple.com/documentation/foundation/nsurlrequest/networkservicetype
typedef NS_ENUM(NSUInteger, NSURLRequestNetworkServiceType) {
    NSURLNetworkServiceTypeDefault NS_SWIFT_NAME(default) = 0,
    NSURLNetworkServiceTypeVideo NS_SWIFT_NAME(video) = 2,
    NSURLNetworkServiceTypeBackground NS_SWIFT_NAME(background) = 3,
    NSURLNetworkServiceTypeVoice NS_SWIFT_NAME(voice) = 4,
    NSURLNetworkServiceTypeResponsiveData NS_SWIFT_NAME(responsiveData) = 6,
    NSURLNetworkServiceTypeAVStreaming NS_SWIFT_NAME(avStreaming) = 8,
    NSURLNetworkServiceTypeResponsiveAV NS_SWIFT_NAME(responsiveAV) = 9,
    NSURLNetworkServiceTypeCallSignaling NS_SWIFT_NAME(callSignaling) = 11
} NS_SWIFT_NAME(NSURLRequest.NetworkServiceType);

// https://developer.apple.com/documentation/foundation/nsurlrequest/attribution-swift.enum
typedef NS_ENUM(NSUInteger, NSURLRequestAttribution) {
    NSURLRequestAttributionDeveloper = 0,
    NSURLRequestAttributionUser = 1
} NS_SWIFT_NAME(NSURLRequest.Attribution);

// https://developer.apple.com/documentation/foundation/nsurlrequest
NS_SWIFT_SENDABLE
__attribute__((swift_bridge("URLRequest")))
@interface NSURLRequest : NSObject <NSSecureCoding, NSCopying, NSMutableCopying>
- (instancetype)initWithURL:(NSURL *)URL;
- (instancetype)initWithURL:(NSURL *)URL
                cachePolicy:(NSURLRequestCachePolicy)cachePolicy
            timeoutInterval:(NSTimeInterval)timeoutInterval NS_DESIGNATED_INITIALIZER;
@property (nullable, readonly, copy) NSURL *URL;
@property (readonly) NSURLRequestCachePolicy cachePolicy;
@property (readonly) NSTimeInterval timeoutInterval;
@end

// https://developer.apple.com/documentation/foundation/nsmutableurlrequest
NS_SWIFT_NONSENDABLE
@interface NSMutableURLRequest : NSURLRequest
@property (nullable, copy) NSURL *URL;
@end

// https://developer.apple.com/documentation/foundation/urlresponse
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLResponse)
@interface NSURLResponse : NSObject <NSSecureCoding, NSCopying>
- (instancetype)initWithURL:(NSURL *)URL
                   MIMEType:(nullable NSString *)MIMEType
      expectedContentLength:(NSInteger)length
           textEncodingName:(nullable NSString *)name NS_SWIFT_NAME(init(url:mimeType:expectedContentLength:textEncodingName:)) NS_DESIGNATED_INITIALIZER;
@property (nullable, readonly, copy) NSURL *URL;
@property (nullable, readonly, copy) NSString *MIMEType NS_SWIFT_NAME(mimeType);
@property (readonly) long long expectedContentLength;
@property (nullable, readonly, copy) NSString *textEncodingName;
@property (nullable, readonly, copy) NSString *suggestedFilename;
@end

// https://developer.apple.com/documentation/foundation/httpurlresponse
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(HTTPURLResponse)
@interface NSHTTPURLResponse : NSURLResponse
- (nullable instancetype)initWithURL:(NSURL *)url
                          statusCode:(NSInteger)statusCode
                         HTTPVersion:(nullable NSString *)HTTPVersion
                        headerFields:(nullable NSDictionary<NSString *, NSString *> *)headerFields NS_SWIFT_NAME(init(url:statusCode:httpVersion:headerFields:));
@property (readonly) NSInteger statusCode;
@property (readonly, copy) NSDictionary *allHeaderFields;
// https://developer.apple.com/documentation/foundation/httpurlresponse/value(forhttpheaderfield:)
- (nullable NSString *)valueForHTTPHeaderField:(NSString *)field NS_SWIFT_NAME(value(forHTTPHeaderField:));
+ (NSString *)localizedStringForStatusCode:(NSInteger)statusCode;
@end

// https://developer.apple.com/documentation/foundation/httpcookie/acceptpolicy
typedef NS_ENUM(NSUInteger, NSHTTPCookieAcceptPolicy) {
    NSHTTPCookieAcceptPolicyAlways,
    NSHTTPCookieAcceptPolicyNever,
    NSHTTPCookieAcceptPolicyOnlyFromMainDocumentDomain
} NS_SWIFT_NAME(HTTPCookie.AcceptPolicy);

// https://developer.apple.com/documentation/foundation/httpcookiepropertykey
typedef NSString *NSHTTPCookiePropertyKey NS_TYPED_EXTENSIBLE_ENUM NS_SWIFT_NAME(HTTPCookiePropertyKey);

// https://developer.apple.com/documentation/foundation/httpcookie
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(HTTPCookie)
@interface NSHTTPCookie : NSObject
- (nullable instancetype)initWithProperties:(NSDictionary<NSHTTPCookiePropertyKey, id> *)properties;
@property (nullable, readonly, copy) NSDictionary<NSHTTPCookiePropertyKey, id> *properties;
@property (readonly) NSUInteger version;
@property (readonly, copy) NSString *name;
@property (readonly, copy) NSString *value;
@property (nullable, readonly, copy) NSDate *expiresDate;
@property (readonly, getter=isSessionOnly) BOOL sessionOnly;
@property (readonly, copy) NSString *domain;
@property (readonly, copy) NSString *path;
@property (readonly, getter=isSecure) BOOL secure;
@property (readonly, getter=isHTTPOnly) BOOL HTTPOnly;
@end

// https://developer.apple.com/documentation/foundation/httpcookiestorage
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(HTTPCookieStorage)
@interface NSHTTPCookieStorage : NSObject
@property (class, readonly, strong) NSHTTPCookieStorage *sharedHTTPCookieStorage NS_SWIFT_NAME(shared);
@property (nullable, readonly, copy) NSArray<NSHTTPCookie *> *cookies;
- (void)setCookie:(NSHTTPCookie *)cookie;
- (void)deleteCookie:(NSHTTPCookie *)cookie;
- (nullable NSArray<NSHTTPCookie *> *)cookiesForURL:(NSURL *)URL NS_SWIFT_NAME(cookies(for:));
@property NSHTTPCookieAcceptPolicy cookieAcceptPolicy;
@end

// https://developer.apple.com/documentation/foundation/urlcache/storagepolicy
typedef NS_ENUM(NSUInteger, NSURLCacheStoragePolicy) {
    NSURLCacheStorageAllowed,
    NSURLCacheStorageAllowedInMemoryOnly,
    NSURLCacheStorageNotAllowed
} NS_SWIFT_NAME(URLCache.StoragePolicy);

// https://developer.apple.com/documentation/foundation/cachedurlresponse
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(CachedURLResponse)
@interface NSCachedURLResponse : NSObject <NSSecureCoding, NSCopying>
- (instancetype)initWithResponse:(NSURLResponse *)response data:(NSData *)data;
@property (readonly, copy) NSURLResponse *response;
@property (readonly, copy) NSData *data;
@property (readonly) NSURLCacheStoragePolicy storagePolicy;
@end

// https://developer.apple.com/documentation/foundation/urlcache
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLCache)
@interface NSURLCache : NSObject
@property (class, strong) NSURLCache *sharedURLCache NS_SWIFT_NAME(shared);
- (instancetype)initWithMemoryCapacity:(NSUInteger)memoryCapacity
                          diskCapacity:(NSUInteger)diskCapacity
                          directoryURL:(nullable NSURL *)directoryURL NS_SWIFT_NAME(init(memoryCapacity:diskCapacity:directory:));
- (nullable NSCachedURLResponse *)cachedResponseForRequest:(NSURLRequest *)request NS_SWIFT_NAME(cachedResponse(for:));
- (void)storeCachedResponse:(NSCachedURLResponse *)cachedResponse forRequest:(NSURLRequest *)request NS_SWIFT_NAME(storeCachedResponse(_:for:));
- (void)removeAllCachedResponses;
@property NSUInteger memoryCapacity;
@property NSUInteger diskCapacity;
@end

NS_ASSUME_NONNULL_END
