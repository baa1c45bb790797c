// Progress.

NS_ASSUME_NONNULL_BEGIN

// https://developer.apple.com/documentation/foundation/progresskind
typedef NSString *NSProgressKind NS_TYPED_EXTENSIBLE_ENUM NS_SWIFT_NAME(ProgressKind);
// https://developer.apple.com/documentation/foundation/progressuserinfokey
typedef NSString *NSProgressUserInfoKey NS_TYPED_EXTENSIBLE_ENUM NS_SWIFT_NAME(ProgressUserInfoKey);

// https://developer.apple.com/documentation/foundation/progress
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(Progress)
@interface NSProgress : NSObject
+ (nullable NSProgress *)currentProgress NS_SWIFT_NAME(current()) NS_SWIFT_UNAVAILABLE_FROM_ASYNC("");
+ (NSProgress *)progressWithTotalUnitCount:(int64_t)unitCount;
+ (NSProgress *)discreteProgressWithTotalUnitCount:(int64_t)unitCount NS_SWIFT_NAME(discreteProgress(totalUnitCount:));
+ (NSProgress *)progressWithTotalUnitCount:(int64_t)unitCount
                                    parent:(NSProgress *)parent
                          pendingUnitCount:(int64_t)portionOfParentTotalUnitCount;
- (instancetype)initWithParent:(nullable NSProgress *)parentProgressOrNil
                      userInfo:(nullable NSDictionary<NSProgressUserInfoKey, id> *)userInfoOrNil NS_DESIGNATED_INITIALIZER NS_SWIFT_UNAVAILABLE_FROM_ASYNC("");
- (void)becomeCurrentWithPendingUnitCount:(int64_t)unitCount NS_SWIFT_UNAVAILABLE_FROM_ASYNC("");
- (void)resignCurrent NS_SWIFT_UNAVAILABLE_FROM_ASYNC("");
- (void)addChild:(NSProgress *)child withPendingUnitCount:(int64_t)inUnitCount;
@property int64_t totalUnitCount;
@property int64_t completedUnitCount;
@property (null_resettable, copy) NSString *localizedDescription;
@property (null_resettable, copy) NSString *localizedAdditionalDescription;
@property (getter=isCancellable) BOOL cancellable;
@property (getter=isPausable) BOOL pausable;
@property (readonly, getter=isCancelled) BOOL cancelled;
@property (readonly, getter=isPaused) BOOL paused;
@property (nullable, copy) void (NS_SWIFT_SENDABLE ^cancellationHandler)(void);
@property (nullable, copy) void (NS_SWIFT_SENDABLE ^pausingHandler)(void);
@property (nullable, copy) void (NS_SWIFT_SENDABLE ^resumingHandler)(void);
- (void)setUserInfoObject:(nullable id)objectOrNil forKey:(NSProgressUserInfoKey)key;
@property (readonly, getter=isIndeterminate) BOOL indeterminate;
@property (readonly) double fractionCompleted;
@property (readonly, getter=isFinished) BOOL finished;
- (void)cancel;
- (void)pause;
- (void)resume;
@property (readonly, copy) NSDictionary<NSProgressUserInfoKey, id> *userInfo;
@property (nullable, copy) NSProgressKind kind;
@end

// https://developer.apple.com/documentation/foundation/progressreporting
NS_SWIFT_NAME(ProgressReporting)
@protocol NSProgressReporting <NSObject>
@property (readonly) NSProgress *progress;
@end

NS_ASSUME_NONNULL_END
