// Threads and locks.

NS_ASSUME_NONNULL_BEGIN

// https://developer.apple.com/documentation/foundation/nslocking
@protocol NSLocking
- (void)lock NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
- (void)unlock NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
@end

// https://developer.apple.com/documentation/foundation/nslock
NS_SWIFT_SENDABLE
@interface NSLock : NSObject <NSLocking>
- (void)lock NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
- (void)unlock NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
- (BOOL)tryLock NS_SWIFT_NAME(try()) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
- (BOOL)lockBeforeDate:(NSDate *)limit NS_SWIFT_NAME(lock(before:)) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
@property (nullable, copy) NSString *name;
@end

// https://developer.apple.com/documentation/foundation/nsrecursivelock
NS_SWIFT_SENDABLE
@interface NSRecursiveLock : NSObject <NSLocking>
- (BOOL)tryLock NS_SWIFT_NAME(try()) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
- (BOOL)lockBeforeDate:(NSDate *)limit NS_SWIFT_NAME(lock(before:)) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
@property (nullable, copy) NSString *name;
@end

// https://developer.apple.com/documentation/foundation/nscondition
NS_SWIFT_SENDABLE
@interface NSCondition : NSObject <NSLocking>
- (void)wait NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
- (BOOL)waitUntilDate:(NSDate *)limit NS_SWIFT_NAME(wait(until:)) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use async-safe scoped locking instead");
- (void)signal;
- (void)broadcast;
@property (nullable, copy) NSString *name;
@end

// https://developer.apple.com/documentation/foundation/thread
NS_SWIFT_NAME(Thread)
@interface NSThread : NSObject
@property (class, readonly, strong) NSThread *currentThread NS_SWIFT_NAME(current) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Thread.current cannot be used from async contexts.");
+ (void)detachNewThreadWithBlock:(void (NS_SWIFT_SENDABLE ^)(void))block NS_SWIFT_NAME(detachNewThread(_:));
+ (BOOL)isMultiThreaded;
@property (readonly, retain) NSMutableDictionary *threadDictionary;
+ (void)sleepUntilDate:(NSDate *)date NS_SWIFT_NAME(sleep(until:)) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use Task.sleep(until:clock:) instead.");
+ (void)sleepForTimeInterval:(NSTimeInterval)ti NS_SWIFT_NAME(sleep(forTimeInterval:)) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Use Task.sleep(until:clock:) instead.");
+ (void)exit NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Threads must not be ended from async contexts.");
@property double threadPriority;
@property NSQualityOfService qualityOfService;
@property (class, readonly, copy) NSArray<NSNumber *> *callStackReturnAddresses;
@property (class, readonly, copy) NSArray<NSString *> *callStackSymbols;
@property (nullable, copy) NSString *name;
@property NSUInteger stackSize;
// https://developer.apple.com/documentation/foundation/thread/ismainthread-swift.property
@property (readonly) BOOL isMainThread NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Work intended for the main actor should be marked with @MainActor.");
@property (class, readonly) BOOL isMainThread NS_SWIFT_UNAVAILABLE_FROM_ASYNC("Work intended for the main actor should be marked with @MainActor.");
@property (class, readonly, strong) NSThread *mainThread;
- (instancetype)init NS_DESIGNATED_INITIALIZER;
- (instancetype)initWithTarget:(id)target selector:(SEL)selector object:(nullable id)argument;
- (instancetype)initWithBlock:(void (NS_SWIFT_SENDABLE ^)(void))block;
@property (readonly, getter=isExecuting) BOOL executing;
@property (readonly, getter=isFinished) BOOL finished;
@property (readonly, getter=isCancelled) BOOL cancelled;
- (void)cancel;
- (void)start;
- (void)main;
@end

NS_ASSUME_NONNULL_END
