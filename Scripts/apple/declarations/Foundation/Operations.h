// Operations and their queues.

NS_ASSUME_NONNULL_BEGIN

// https://developer.apple.com/documentation/foundation/operation/queuepriority-swift.enum
typedef NS_ENUM(NSInteger, NSOperationQueuePriority) {
    NSOperationQueuePriorityVeryLow = -8L,
    NSOperationQueuePriorityLow = -4L,
    NSOperationQueuePriorityNormal = 0,
    NSOperationQueuePriorityHigh = 4,
    NSOperationQueuePriorityVeryHigh = 8
} NS_SWIFT_NAME(Operation.QueuePriority);

// https://developer.apple.com/documentation/foundation/operation
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(Operation)
@interface NSOperation : NSObject
- (void)start;
- (void)main;
@property (readonly, getter=isCancelled) BOOL cancelled;
- (void)cancel;
@property (readonly, getter=isExecuting) BOOL executing;
@property (readonly, getter=isFinished) BOOL finished;
@property (readonly, getter=isConcurrent) BOOL concurrent;
@property (readonly, getter=isAsynchronous) BOOL asynchronous;
@property (readonly, getter=isReady) BOOL ready;
- (void)addDependency:(NSOperation *)op;
- (void)removeDependency:(NSOperation *)op;
@property (readonly, copy) NSArray<NSOperation *> *dependencies;
@property NSOperationQueuePriority queuePriority;
// https://developer.apple.com/documentation/foundation/operation/completionblock
@property (nullable, copy) void (NS_SWIFT_SENDABLE ^completionBlock)(void);
// https://developer.apple.com/documentation/foundation/operation/waituntilfinished()
- (void)waitUntilFinished NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use completionBlock or a dependent Operation instead");
// https://developer.apple.com/documentation/foundation/operation/threadpriority
@property double threadPriority DEPRECATED_SINCE(10.10, 8.0, 9.0, 2.0, 1.0, "Not supported");
@property NSQualityOfService qualityOfService;
@property (nullable, copy) NSString *name;
@end

// https://developer.apple.com/documentation/foundation/blockoperation
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(BlockOperation)
@interface NSBlockOperation : NSOperation
+ (instancetype)blockOperationWithBlock:(void (NS_SWIFT_SENDABLE ^)(void))block;
- (void)addExecutionBlock:(void (NS_SWIFT_SENDABLE ^)(void))block;
@property (readonly, copy) NSArray<void (NS_SWIFT_SENDABLE ^)(void)> *executionBlocks;
@end

// https://developer.apple.com/documentation/foundation/operationqueue/defaultmaxconcurrentoperationcount
static const NSInteger NSOperationQueueDefaultMaxConcurrentOperationCount NS_SWIFT_NAME(OperationQueue.defaultMaxConcurrentOperationCount) = -1;

// https://developer.apple.com/documentation/foundation/operationqueue
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(OperationQueue)
@interface NSOperationQueue : NSObject <NSProgressReporting>
@property (readonly, strong) NSProgress *progress;
- (void)addOperation:(NSOperation *)op;
- (void)addOperations:(NSArray<NSOperation *> *)ops waitUntilFinished:(BOOL)wait;
- (void)addOperationWithBlock:(void (NS_SWIFT_SENDABLE ^)(void))block NS_SWIFT_NAME(addOperation(_:));
// https://developer.apple.com/documentation/foundation/operationqueue/addbarrierblock(_:)
- (void)addBarrierBlock:(void (NS_SWIFT_SENDABLE ^)(void))barrier;
@property NSInteger maxConcurrentOperationCount;
@property (getter=isSuspended) BOOL suspended;
@property (nullable, copy) NSString *name;
@property NSQualityOfService qualityOfService;
@property (nullable, assign) dispatch_queue_t underlyingQueue;
- (void)cancelAllOperations;
// https://developer.apple.com/documentation/foundation/operationqueue/waituntilalloperationsarefinished()
- (void)waitUntilAllOperationsAreFinished NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use addBarrierBlock or a dependent Operation instead");
@property (class, readonly, strong, nullable) NSOperationQueue *currentQueue NS_SWIFT_NAME(current);
@property (class, readonly, strong) NSOperationQueue *mainQueue NS_SWIFT_NAME(main);
@property (readonly, copy) NSArray<__kindof NSOperation *> *operations;
@property (readonly) NSUInteger operationCount;
@end

NS_ASSUME_NONNULL_END
