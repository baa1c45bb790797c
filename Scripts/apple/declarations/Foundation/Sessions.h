// URL sessions, their tasks, delegates and metrics.

NS_ASSUME_NONNULL_BEGIN

@class NSURLSession, NSURLSessionConfiguration, NSURLSessionTask, NSURLSessionDataTask, NSURLSessionUploadTask,
    NSURLSessionDownloadTask, NSURLSessionStreamTask, NSURLSessionTaskMetrics;
@protocol NSURLSessionDelegate, NSURLSessionTaskDelegate;

// https://developer.apple.com/documentation/foundation/urlsession
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSession)
@interface NSURLSession : NSObject
@property (class, readonly, strong) NSURLSession *sharedSession NS_SWIFT_NAME(shared);
+ (NSURLSession *)sessionWithConfiguration:(NSURLSessionConfiguration *)configuration;
+ (NSURLSession *)sessionWithConfiguration:(NSURLSessionConfiguration *)configuration
                                  delegate:(nullable id<NSURLSessionDelegate>)delegate
                             delegateQueue:(nullable NSOperationQueue *)queue;
@property (readonly, retain) NSOperationQueue *delegateQueue;
@property (nullable, readonly, retain) id<NSURLSessionDelegate> delegate;
@property (readonly, copy) NSURLSessionConfiguration *configuration;
@property (nullable, copy) NSString *sessionDescription;
- (void)finishTasksAndInvalidate;
- (void)invalidateAndCancel;
- (void)resetWithCompletionHandler:(void (NS_SWIFT_SENDABLE ^)(void))completionHandler;
- (void)flushWithCompletionHandler:(void (NS_SWIFT_SENDABLE ^)(void))completionHandler;
// https://developer.apple.com/documentation/foundation/urlsession/gettaskswithcompletionhandler(_:)
- (void)getTasksWithCompletionHandler:(void (NS_SWIFT_SENDABLE ^)(NSArray<NSURLSessionDataTask *> *dataTasks,
                                          NSArray<NSURLSessionUploadTask *> *uploadTasks,
                                          NSArray<NSURLSessionDownloadTask *> *downloadTasks))completionHandler
    NS_SWIFT_NAME(getTasksWithCompletionHandler(_:)) NS_SWIFT_ASYNC_NAME(getter:tasks());
// https://developer.apple.com/documentation/foundation/urlsession/getalltasks(completionhandler:)
- (void)getAllTasksWithCompletionHandler:(void (NS_SWIFT_SENDABLE ^)(NSArray<__kindof NSURLSessionTask *> *tasks))completionHandler
    NS_SWIFT_ASYNC_NAME(getter:allTasks());
- (NSURLSessionDataTask *)dataTaskWithRequest:(NSURLRequest *)request NS_SWIFT_NAME(dataTask(with:));
- (NSURLSessionDataTask *)dataTaskWithURL:(NSURL *)url NS_SWIFT_NAME(dataTask(with:));
- (NSURLSessionUploadTask *)uploadTaskWithRequest:(NSURLRequest *)request fromFile:(NSURL *)fileURL NS_SWIFT_NAME(uploadTask(with:fromFile:));
- (NSURLSessionUploadTask *)uploadTaskWithRequest:(NSURLRequest *)request fromData:(NSData *)bodyData NS_SWIFT_NAME(uploadTask(with:from:));
// https://developer.apple.com/documentation/foundation/urlsession/uploadtask(withresumedata:)
- (NSURLSessionUploadTask *)uploadTaskWithResumeData:(NSData *)resumeData NS_SWIFT_NAME(uploadTask(withResumeData:));
- (NSURLSessionUploadTask *)uploadTaskWithStreamedRequest:(NSURLRequest *)request NS_SWIFT_NAME(uploadTask(withStreamedRequest:));
- (NSURLSessionDownloadTask *)downloadTaskWithRequest:(NSURLRequest *)request NS_SWIFT_NAME(downloadTask(with:));
- (NSURLSessionDownloadTask *)downloadTaskWithURL:(NSURL *)url NS_SWIFT_NAME(downloadTask(with:));
- (NSURLSessionDownloadTask *)downloadTaskWithResumeData:(NSData *)resumeData NS_SWIFT_NAME(downloadTask(withResumeData:));
@end

// https://developer.apple.com/documentation/foundation/urlsession/datatask(with:completionhandler:)-5i6by
// The asynchronous methods have other names in Swift: see Classes.swift.
@interface NSURLSession (NSURLSessionAsynchronousConvenience)
- (NSURLSessionDataTask *)dataTaskWithRequest:(NSURLRequest *)request
                            completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSData *_Nullable data, NSURLResponse *_Nullable response, NSError *_Nullable error))completionHandler
    NS_SWIFT_NAME(dataTask(with:completionHandler:)) NS_SWIFT_DISABLE_ASYNC;
- (NSURLSessionDataTask *)dataTaskWithURL:(NSURL *)url
                        completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSData *_Nullable data, NSURLResponse *_Nullable response, NSError *_Nullable error))completionHandler
    NS_SWIFT_NAME(dataTask(with:completionHandler:)) NS_SWIFT_DISABLE_ASYNC;
- (NSURLSessionUploadTask *)uploadTaskWithRequest:(NSURLRequest *)request
                                         fromFile:(NSURL *)fileURL
                                completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSData *_Nullable data, NSURLResponse *_Nullable response, NSError *_Nullable error))completionHandler
    NS_SWIFT_NAME(uploadTask(with:fromFile:completionHandler:)) NS_SWIFT_DISABLE_ASYNC;
- (NSURLSessionUploadTask *)uploadTaskWithRequest:(NSURLRequest *)request
                                         fromData:(nullable NSData *)bodyData
                                completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSData *_Nullable data, NSURLResponse *_Nullable response, NSError *_Nullable error))completionHandler
    NS_SWIFT_NAME(uploadTask(with:from:completionHandler:)) NS_SWIFT_DISABLE_ASYNC;
- (NSURLSessionDownloadTask *)downloadTaskWithRequest:(NSURLRequest *)request
                                    completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSURL *_Nullable location, NSURLResponse *_Nullable response, NSError *_Nullable error))completionHandler
    NS_SWIFT_NAME(downloadTask(with:completionHandler:)) NS_SWIFT_DISABLE_ASYNC;
- (NSURLSessionDownloadTask *)downloadTaskWithURL:(NSURL *)url
                                completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSURL *_Nullable location, NSURLResponse *_Nullable response, NSError *_Nullable error))completionHandler
    NS_SWIFT_NAME(downloadTask(with:completionHandler:)) NS_SWIFT_DISABLE_ASYNC;
@end

// https://developer.apple.com/documentation/foundation/urlsessiontask/state-swift.enum
typedef NS_ENUM(NSInteger, NSURLSessionTaskState) {
    NSURLSessionTaskStateRunning = 0,
    NSURLSessionTaskStateSuspended = 1,
    NSURLSessionTaskStateCanceling = 2,
    NSURLSessionTaskStateCompleted = 3
} NS_SWIFT_NAME(URLSessionTask.State);

// https://developer.apple.com/documentation/foundation/urlsessiontask
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionTask)
@interface NSURLSessionTask : NSObject <NSCopying, NSProgressReporting>
@property (readonly) NSUInteger taskIdentifier;
@property (nullable, readonly, copy) NSURLRequest *originalRequest;
@property (nullable, readonly, copy) NSURLRequest *currentRequest;
@property (nullable, readonly, copy) NSURLResponse *response;
// https://developer.apple.com/documentation/foundation/urlsessiontask/delegate
@property (nullable, retain) id<NSURLSessionTaskDelegate> delegate;
@property (readonly, strong) NSProgress *progress;
@property (nullable, copy) NSDate *earliestBeginDate;
@property int64_t countOfBytesClientExpectsToSend;
@property int64_t countOfBytesClientExpectsToReceive;
@property (readonly) int64_t countOfBytesSent;
@property (readonly) int64_t countOfBytesReceived;
@property (readonly) int64_t countOfBytesExpectedToSend;
@property (readonly) int64_t countOfBytesExpectedToReceive;
@property (nullable, copy) NSString *taskDescription;
- (void)cancel;
@property (readonly) NSURLSessionTaskState state;
@property (nullable, readonly, copy) NSError *error;
- (void)suspend;
- (void)resume;
@property float priority;
@property BOOL prefersIncrementalDelivery;
- (instancetype)init DEPRECATED_SINCE(10.15, 13.0, 13.0, 6.0, 1.0, "Not supported");
+ (instancetype)new DEPRECATED_SINCE(10.15, 13.0, 13.0, 6.0, 1.0, "Not supported");
@end

// https://developer.apple.com/documentation/foundation/urlsessiontask/defaultpriority
FOUNDATION_EXPORT const float NSURLSessionTaskPriorityDefault NS_SWIFT_NAME(URLSessionTask.defaultPriority);
FOUNDATION_EXPORT const float NSURLSessionTaskPriorityLow NS_SWIFT_NAME(URLSessionTask.lowPriority);
FOUNDATION_EXPORT const float NSURLSessionTaskPriorityHigh NS_SWIFT_NAME(URLSessionTask.highPriority);

// https://developer.apple.com/documentation/foundation/urlsessiondatatask
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionDataTask)
@interface NSURLSessionDataTask : NSURLSessionTask
- (instancetype)init DEPRECATED_SINCE(10.15, 13.0, 13.0, 6.0, 1.0, "Please use -[NSURLSession dataTaskWithRequest:] or other NSURLSession methods to create instances");
@end

// https://developer.apple.com/documentation/foundation/urlsessionuploadtask
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionUploadTask)
@interface NSURLSessionUploadTask : NSURLSessionDataTask
- (instancetype)init DEPRECATED_SINCE(10.15, 13.0, 13.0, 6.0, 1.0, "Please use -[NSURLSession uploadTaskWithStreamedRequest:] or other NSURLSession methods to create instances");
// https://developer.apple.com/documentation/foundation/urlsessionuploadtask/cancel(byproducingresumedata:)
- (void)cancelByProducingResumeData:(void (NS_SWIFT_SENDABLE ^)(NSData *_Nullable resumeData))completionHandler
    NS_SWIFT_NAME(cancel(byProducingResumeData:)) NS_SWIFT_ASYNC_NAME(cancelByProducingResumeData());
@end

// https://developer.apple.com/documentation/foundation/urlsessiondownloadtask
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionDownloadTask)
@interface NSURLSessionDownloadTask : NSURLSessionTask
- (instancetype)init DEPRECATED_SINCE(10.15, 13.0, 13.0, 6.0, 1.0, "Please use -[NSURLSession downloadTaskWithRequest:] or other NSURLSession methods to create instances");
// https://developer.apple.com/documentation/foundation/urlsessiondownloadtask/cancel(byproducingresumedata:)
- (void)cancelByProducingResumeData:(void (NS_SWIFT_SENDABLE ^)(NSData *_Nullable resumeData))completionHandler
    NS_SWIFT_NAME(cancel(byProducingResumeData:)) NS_SWIFT_ASYNC_NAME(cancelByProducingResumeData());
@end

// https://developer.apple.com/documentation/foundation/urlsessionstreamtask
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionStreamTask)
@interface NSURLSessionStreamTask : NSURLSessionTask
@end

// https://developer.apple.com/documentation/foundation/urlsessionwebsockettask
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionWebSocketTask)
@interface NSURLSessionWebSocketTask : NSURLSessionTask
@end

// https://developer.apple.com/documentation/foundation/urlsessionconfiguration/multipathservicetype-swift.enum
typedef NS_ENUM(NSInteger, NSURLSessionMultipathServiceType) {
    NSURLSessionMultipathServiceTypeNone = 0,
    NSURLSessionMultipathServiceTypeHandover = 1,
    NSURLSessionMultipathServiceTypeInteractive = 2,
    NSURLSessionMultipathServiceTypeAggregate = 3
} NS_SWIFT_NAME(URLSessionConfiguration.MultipathServiceType);

// https://developer.apple.com/documentation/foundation/urlsessionconfiguration
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionConfiguration)
@interface NSURLSessionConfiguration : NSObject <NSCopying>
@property (class, readonly, strong) NSURLSessionConfiguration *defaultSessionConfiguration NS_SWIFT_NAME(default);
@property (class, readonly, strong) NSURLSessionConfiguration *ephemeralSessionConfiguration NS_SWIFT_NAME(ephemeral);
+ (NSURLSessionConfiguration *)backgroundSessionConfigurationWithIdentifier:(NSString *)identifier NS_SWIFT_NAME(background(withIdentifier:));
@property (nullable, readonly, copy) NSString *identifier;
@property NSURLRequestCachePolicy requestCachePolicy;
@property NSTimeInterval timeoutIntervalForRequest;
@property NSTimeInterval timeoutIntervalForResource;
@property NSURLRequestNetworkServiceType networkServiceType;
@property BOOL allowsCellularAccess;
@property BOOL allowsExpensiveNetworkAccess;
@property BOOL allowsConstrainedNetworkAccess;
@property BOOL requiresDNSSECValidation;
@property BOOL waitsForConnectivity;
// https://developer.apple.com/documentation/foundation/urlsessionconfiguration/isdiscretionary
@property (getter=isDiscretionary) BOOL discretionary;
@property (nullable, copy) NSString *sharedContainerIdentifier;
// https://developer.apple.com/documentation/foundation/urlsessionconfiguration/sessionsendslaunchevents
@property BOOL sessionSendsLaunchEvents;
@property (nullable, copy) NSDictionary *connectionProxyDictionary;
@property BOOL HTTPShouldUsePipelining NS_SWIFT_NAME(httpShouldUsePipelining);
@property BOOL HTTPShouldSetCookies NS_SWIFT_NAME(httpShouldSetCookies);
@property NSHTTPCookieAcceptPolicy HTTPCookieAcceptPolicy NS_SWIFT_NAME(httpCookieAcceptPolicy);
@property (nullable, copy) NSDictionary *HTTPAdditionalHeaders NS_SWIFT_NAME(httpAdditionalHeaders);
@property NSInteger HTTPMaximumConnectionsPerHost NS_SWIFT_NAME(httpMaximumConnectionsPerHost);
@property (nullable, retain) NSHTTPCookieStorage *HTTPCookieStorage NS_SWIFT_NAME(httpCookieStorage);
@property (nullable, retain) NSURLCredentialStorage *URLCredentialStorage NS_SWIFT_NAME(urlCredentialStorage);
@property (nullable, retain) NSURLCache *URLCache NS_SWIFT_NAME(urlCache);
@property BOOL shouldUseExtendedBackgroundIdleMode;
@property (nullable, copy) NSArray<Class> *protocolClasses;
// https://developer.apple.com/documentation/foundation/urlsessionconfiguration/multipathservicetype-swift.property
@property NSURLSessionMultipathServiceType multipathServiceType
    __attribute__((availability(macos, unavailable))) __attribute__((availability(watchos, unavailable))) __attribute__((availability(tvos, unavailable)));
// https://developer.apple.com/documentation/foundation/urlsessionconfiguration/usesclassicloadingmode
@property BOOL usesClassicLoadingMode AVAILABLE_FROM(15.4, 18.4, 18.4, 11.4, 2.4);
// https://developer.apple.com/documentation/foundation/urlsessionconfiguration/enablesearlydata
@property BOOL enablesEarlyData AVAILABLE_FROM(26.0, 26.0, 26.0, 26.0, 26.0);
- (instancetype)init DEPRECATED_SINCE(10.15, 13.0, 13.0, 6.0, 1.0, "Please use NSURLSessionConfiguration.defaultSessionConfiguration or other class methods to create instances");
@end

// https://developer.apple.com/documentation/foundation/urlsession/authchallengedisposition
typedef NS_ENUM(NSInteger, NSURLSessionAuthChallengeDisposition) {
    NSURLSessionAuthChallengeUseCredential = 0,
    NSURLSessionAuthChallengePerformDefaultHandling = 1,
    NSURLSessionAuthChallengeCancelAuthenticationChallenge = 2,
    NSURLSessionAuthChallengeRejectProtectionSpace = 3
} NS_SWIFT_NAME(URLSession.AuthChallengeDisposition);

// https://developer.apple.com/documentation/foundation/urlsession/responsedisposition
typedef NS_ENUM(NSInteger, NSURLSessionResponseDisposition) {
    NSURLSessionResponseCancel = 0,
    NSURLSessionResponseAllow = 1,
    NSURLSessionResponseBecomeDownload = 2,
    NSURLSessionResponseBecomeStream = 3
} NS_SWIFT_NAME(URLSession.ResponseDisposition);

// https://developer.apple.com/documentation/foundation/urlsession/delayedrequestdisposition
typedef NS_ENUM(NSInteger, NSURLSessionDelayedRequestDisposition) {
    NSURLSessionDelayedRequestContinueLoading = 0,
    NSURLSessionDelayedRequestUseNewRequest = 1,
    NSURLSessionDelayedRequestCancel = 2
} NS_SWIFT_NAME(URLSession.DelayedRequestDisposition);

// https://developer.apple.com/documentation/foundation/urlsessiondelegate
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionDelegate)
@protocol NSURLSessionDelegate <NSObject>
@optional
- (void)URLSession:(NSURLSession *)session didBecomeInvalidWithError:(nullable NSError *)error NS_SWIFT_NAME(urlSession(_:didBecomeInvalidWithError:));
- (void)URLSession:(NSURLSession *)session
    didReceiveChallenge:(NSURLAuthenticationChallenge *)challenge
      completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSURLSessionAuthChallengeDisposition disposition, NSURLCredential *_Nullable credential))completionHandler
    NS_SWIFT_NAME(urlSession(_:didReceive:completionHandler:));
- (void)URLSessionDidFinishEventsForBackgroundURLSession:(NSURLSession *)session NS_SWIFT_NAME(urlSessionDidFinishEvents(forBackgroundURLSession:));
@end

// https://developer.apple.com/documentation/foundation/urlsessiontaskdelegate
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionTaskDelegate)
@protocol NSURLSessionTaskDelegate <NSURLSessionDelegate>
@optional
- (void)URLSession:(NSURLSession *)session didCreateTask:(NSURLSessionTask *)task NS_SWIFT_NAME(urlSession(_:didCreateTask:));
- (void)URLSession:(NSURLSession *)session
                        task:(NSURLSessionTask *)task
    willBeginDelayedRequest:(NSURLRequest *)request
          completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSURLSessionDelayedRequestDisposition disposition, NSURLRequest *_Nullable newRequest))completionHandler
    NS_SWIFT_NAME(urlSession(_:task:willBeginDelayedRequest:completionHandler:));
- (void)URLSession:(NSURLSession *)session taskIsWaitingForConnectivity:(NSURLSessionTask *)task NS_SWIFT_NAME(urlSession(_:taskIsWaitingForConnectivity:));
- (void)URLSession:(NSURLSession *)session
                          task:(NSURLSessionTask *)task
    willPerformHTTPRedirection:(NSHTTPURLResponse *)response
                    newRequest:(NSURLRequest *)request
             completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSURLRequest *_Nullable))completionHandler
    NS_SWIFT_NAME(urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:));
- (void)URLSession:(NSURLSession *)session
                   task:(NSURLSessionTask *)task
    didReceiveChallenge:(NSURLAuthenticationChallenge *)challenge
      completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSURLSessionAuthChallengeDisposition disposition, NSURLCredential *_Nullable credential))completionHandler
    NS_SWIFT_NAME(urlSession(_:task:didReceive:completionHandler:));
- (void)URLSession:(NSURLSession *)session
                  task:(NSURLSessionTask *)task
     needNewBodyStream:(void (NS_SWIFT_SENDABLE ^)(NSInputStream *_Nullable bodyStream))completionHandler
    NS_SWIFT_NAME(urlSession(_:task:needNewBodyStream:)) NS_SWIFT_ASYNC_NAME(urlSession(_:needNewBodyStreamForTask:));
- (void)URLSession:(NSURLSession *)session
                        task:(NSURLSessionTask *)task
             didSendBodyData:(int64_t)bytesSent
              totalBytesSent:(int64_t)totalBytesSent
    totalBytesExpectedToSend:(int64_t)totalBytesExpectedToSend
    NS_SWIFT_NAME(urlSession(_:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:));
- (void)URLSession:(NSURLSession *)session
                              task:(NSURLSessionTask *)task
    didReceiveInformationalResponse:(NSHTTPURLResponse *)response NS_SWIFT_NAME(urlSession(_:task:didReceiveInformationalResponse:));
- (void)URLSession:(NSURLSession *)session
                          task:(NSURLSessionTask *)task
    didFinishCollectingMetrics:(NSURLSessionTaskMetrics *)metrics NS_SWIFT_NAME(urlSession(_:task:didFinishCollecting:));
- (void)URLSession:(NSURLSession *)session
                    task:(NSURLSessionTask *)task
    didCompleteWithError:(nullable NSError *)error NS_SWIFT_NAME(urlSession(_:task:didCompleteWithError:));
@end

// https://developer.apple.com/documentation/foundation/urlsessiondatadelegate
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionDataDelegate)
@protocol NSURLSessionDataDelegate <NSURLSessionTaskDelegate>
@optional
- (void)URLSession:(NSURLSession *)session
              dataTask:(NSURLSessionDataTask *)dataTask
    didReceiveResponse:(NSURLResponse *)response
     completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSURLSessionResponseDisposition disposition))completionHandler
    NS_SWIFT_NAME(urlSession(_:dataTask:didReceive:completionHandler:));
- (void)URLSession:(NSURLSession *)session
                 dataTask:(NSURLSessionDataTask *)dataTask
    didBecomeDownloadTask:(NSURLSessionDownloadTask *)downloadTask NS_SWIFT_NAME(urlSession(_:dataTask:didBecome:));
- (void)URLSession:(NSURLSession *)session
               dataTask:(NSURLSessionDataTask *)dataTask
    didBecomeStreamTask:(NSURLSessionStreamTask *)streamTask NS_SWIFT_NAME(urlSession(_:dataTask:didBecome:));
- (void)URLSession:(NSURLSession *)session dataTask:(NSURLSessionDataTask *)dataTask didReceiveData:(NSData *)data NS_SWIFT_NAME(urlSession(_:dataTask:didReceive:));
- (void)URLSession:(NSURLSession *)session
             dataTask:(NSURLSessionDataTask *)dataTask
    willCacheResponse:(NSCachedURLResponse *)proposedResponse
    completionHandler:(void (NS_SWIFT_SENDABLE ^)(NSCachedURLResponse *_Nullable cachedResponse))completionHandler
    NS_SWIFT_NAME(urlSession(_:dataTask:willCacheResponse:completionHandler:));
@end

// https://developer.apple.com/documentation/foundation/urlsessiondownloaddelegate
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionDownloadDelegate)
@protocol NSURLSessionDownloadDelegate <NSURLSessionTaskDelegate>
- (void)URLSession:(NSURLSession *)session
                 downloadTask:(NSURLSessionDownloadTask *)downloadTask
    didFinishDownloadingToURL:(NSURL *)location NS_SWIFT_NAME(urlSession(_:downloadTask:didFinishDownloadingTo:));
@optional
- (void)URLSession:(NSURLSession *)session
                 downloadTask:(NSURLSessionDownloadTask *)downloadTask
                 didWriteData:(int64_t)bytesWritten
            totalBytesWritten:(int64_t)totalBytesWritten
    totalBytesExpectedToWrite:(int64_t)totalBytesExpectedToWrite
    NS_SWIFT_NAME(urlSession(_:downloadTask:didWriteData:totalBytesWritten:totalBytesExpectedToWrite:));
- (void)URLSession:(NSURLSession *)session
          downloadTask:(NSURLSessionDownloadTask *)downloadTask
     didResumeAtOffset:(int64_t)fileOffset
    expectedTotalBytes:(int64_t)expectedTotalBytes NS_SWIFT_NAME(urlSession(_:downloadTask:didResumeAtOffset:expectedTotalBytes:));
@end

// https://developer.apple.com/documentation/foundation/urlsessiontaskmetrics/resourcefetchtype
typedef NS_ENUM(NSInteger, NSURLSessionTaskMetricsResourceFetchType) {
    NSURLSessionTaskMetricsResourceFetchTypeUnknown,
    NSURLSessionTaskMetricsResourceFetchTypeNetworkLoad,
    NSURLSessionTaskMetricsResourceFetchTypeServerPush,
    NSURLSessionTaskMetricsResourceFetchTypeLocalCache
} NS_SWIFT_NAME(URLSessionTaskMetrics.ResourceFetchType);

// https://developer.apple.com/documentation/foundation/urlsessiontasktransactionmetrics
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionTaskTransactionMetrics)
@interface NSURLSessionTaskTransactionMetrics : NSObject
@property (copy, readonly) NSURLRequest *request;
@property (nullable, copy, readonly) NSURLResponse *response;
@property (nullable, copy, readonly) NSDate *fetchStartDate;
@property (nullable, copy, readonly) NSDate *domainLookupStartDate;
@property (nullable, copy, readonly) NSDate *domainLookupEndDate;
@property (nullable, copy, readonly) NSDate *connectStartDate;
@property (nullable, copy, readonly) NSDate *secureConnectionStartDate;
@property (nullable, copy, readonly) NSDate *secureConnectionEndDate;
@property (nullable, copy, readonly) NSDate *connectEndDate;
@property (nullable, copy, readonly) NSDate *requestStartDate;
@property (nullable, copy, readonly) NSDate *requestEndDate;
@property (nullable, copy, readonly) NSDate *responseStartDate;
@property (nullable, copy, readonly) NSDate *responseEndDate;
@property (nullable, copy, readonly) NSString *networkProtocolName;
@property (assign, readonly, getter=isProxyConnection) BOOL proxyConnection;
@property (assign, readonly, getter=isReusedConnection) BOOL reusedConnection;
@property (assign, readonly) NSURLSessionTaskMetricsResourceFetchType resourceFetchType;
@property (readonly) int64_t countOfRequestHeaderBytesSent;
@property (readonly) int64_t countOfRequestBodyBytesSent;
@property (readonly) int64_t countOfRequestBodyBytesBeforeEncoding;
@property (readonly) int64_t countOfResponseHeaderBytesReceived;
@property (readonly) int64_t countOfResponseBodyBytesReceived;
@property (readonly) int64_t countOfResponseBodyBytesAfterDecoding;
@property (nullable, copy, readonly) NSString *localAddress;
// https://developer.apple.com/documentation/foundation/urlsessiontasktransactionmetrics/localport
@property (nullable, copy, readonly) NSNumber *localPort NS_REFINED_FOR_SWIFT;
@property (nullable, copy, readonly) NSString *remoteAddress;
@property (nullable, copy, readonly) NSNumber *remotePort NS_REFINED_FOR_SWIFT;
@property (readonly, getter=isCellular) BOOL cellular;
@property (readonly, getter=isExpensive) BOOL expensive;
@property (readonly, getter=isConstrained) BOOL constrained;
@property (readonly, getter=isMultipath) BOOL multipath;
@end

// https://developer.apple.com/documentation/foundation/urlsessiontaskmetrics
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(URLSessionTaskMetrics)
@interface NSURLSessionTaskMetrics : NSObject
@property (copy, readonly) NSArray<NSURLSessionTaskTransactionMetrics *> *transactionMetrics;
@property (copy, readonly) NSDateInterval *taskInterval;
@property (assign, readonly) NSUInteger redirectCount;
@end

NS_ASSUME_NONNULL_END
