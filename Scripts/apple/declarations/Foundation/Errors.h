// Errors: the class and the names of domains and keys. The structures (`CocoaError`, `URLError`, `POSIXError`) are in Errors.swift.

NS_ASSUME_NONNULL_BEGIN

// https://developer.apple.com/documentation/foundation/nserrordomain
typedef NSString *NSErrorDomain;
// https://developer.apple.com/documentation/foundation/nserroruserinfokey
typedef NSString *NSErrorUserInfoKey;

// https://developer.apple.com/documentation/foundation/nscocoaerrordomain
FOUNDATION_EXPORT NSErrorDomain const NSCocoaErrorDomain;
// https://developer.apple.com/documentation/foundation/nsposixerrordomain
FOUNDATION_EXPORT NSErrorDomain const NSPOSIXErrorDomain;
// https://developer.apple.com/documentation/foundation/nsosstatuserrordomain
FOUNDATION_EXPORT NSErrorDomain const NSOSStatusErrorDomain;
// https://developer.apple.com/documentation/foundation/nsmacherrordomain
FOUNDATION_EXPORT NSErrorDomain const NSMachErrorDomain;
// https://developer.apple.com/documentation/foundation/nsurlerrordomain
FOUNDATION_EXPORT NSErrorDomain const NSURLErrorDomain;

// https://developer.apple.com/documentation/foundation/nsunderlyingerrorkey
FOUNDATION_EXPORT NSErrorUserInfoKey const NSUnderlyingErrorKey;
// https://developer.apple.com/documentation/foundation/nslocalizeddescriptionkey
FOUNDATION_EXPORT NSErrorUserInfoKey const NSLocalizedDescriptionKey;
// https://developer.apple.com/documentation/foundation/nslocalizedfailurereasonerrorkey
FOUNDATION_EXPORT NSErrorUserInfoKey const NSLocalizedFailureReasonErrorKey;
// https://developer.apple.com/documentation/foundation/nslocalizedrecoverysuggestionerrorkey
FOUNDATION_EXPORT NSErrorUserInfoKey const NSLocalizedRecoverySuggestionErrorKey;
// https://developer.apple.com/documentation/foundation/nsdebugdescriptionerrorkey
FOUNDATION_EXPORT NSErrorUserInfoKey const NSDebugDescriptionErrorKey;
// https://developer.apple.com/documentation/foundation/nsfilepatherrorkey
FOUNDATION_EXPORT NSErrorUserInfoKey const NSFilePathErrorKey;
// https://developer.apple.com/documentation/foundation/nsurlerrorkey
FOUNDATION_EXPORT NSErrorUserInfoKey const NSURLErrorKey;
// https://developer.apple.com/documentation/foundation/nsurlerrorfailingurlerrorkey
FOUNDATION_EXPORT NSString *const NSURLErrorFailingURLErrorKey;
// https://developer.apple.com/documentation/foundation/nsurlerrorfailingurlstringerrorkey
FOUNDATION_EXPORT NSString *const NSURLErrorFailingURLStringErrorKey;
// https://developer.apple.com/documentation/foundation/nsurlsessiondownloadtaskresumedata
FOUNDATION_EXPORT NSString *const NSURLSessionDownloadTaskResumeData;
// https://developer.apple.com/documentation/foundation/nsurlerrorbackgroundtaskcancelledreasonkey
FOUNDATION_EXPORT NSString *const NSURLErrorBackgroundTaskCancelledReasonKey;
// https://developer.apple.com/documentation/foundation/nsurlerrornetworkunavailablereasonkey
FOUNDATION_EXPORT NSErrorUserInfoKey const NSURLErrorNetworkUnavailableReasonKey;

// https://developer.apple.com/documentation/foundation/nserror
NS_SWIFT_SENDABLE
__attribute__((swift_bridge("Swift.Error")))
@interface NSError : NSObject <NSCopying, NSSecureCoding>
- (instancetype)initWithDomain:(NSErrorDomain)domain
                          code:(NSInteger)code
                      userInfo:(nullable NSDictionary<NSErrorUserInfoKey, id> *)dict NS_DESIGNATED_INITIALIZER;
@property (readonly, copy) NSErrorDomain domain;
@property (readonly) NSInteger code;
@property (readonly, copy) NSDictionary<NSErrorUserInfoKey, id> *userInfo;
@property (readonly, copy) NSString *localizedDescription;
@property (nullable, readonly, copy) NSString *localizedFailureReason;
@property (nullable, readonly, copy) NSString *localizedRecoverySuggestion;
@property (nullable, readonly, copy) NSArray<NSString *> *localizedRecoveryOptions;
@property (nullable, readonly, strong) id recoveryAttempter;
@property (nullable, readonly, copy) NSString *helpAnchor;
@property (readonly, copy) NSArray<NSError *> *underlyingErrors;
@end

// https://developer.apple.com/documentation/foundation/nsexception
@interface NSException : NSObject
@property (readonly, copy) NSString *name;
@property (nullable, readonly, copy) NSString *reason;
@end

NS_ASSUME_NONNULL_END
