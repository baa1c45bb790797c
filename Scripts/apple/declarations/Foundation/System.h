// The process, its bundles, JSON, XML and formatters.

NS_ASSUME_NONNULL_BEGIN

// https://developer.apple.com/documentation/foundation/bundle
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(Bundle)
@interface NSBundle : NSObject
@property (class, readonly, strong) NSBundle *mainBundle NS_SWIFT_NAME(main);
- (nullable instancetype)initWithPath:(NSString *)path NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithURL:(NSURL *)url;
+ (NSBundle *)bundleForClass:(Class)aClass NS_SWIFT_NAME(init(for:));
@property (class, readonly, copy) NSArray<NSBundle *> *allBundles;
@property (class, readonly, copy) NSArray<NSBundle *> *allFrameworks;
@property (readonly, copy) NSURL *bundleURL;
@property (nullable, readonly, copy) NSURL *resourceURL;
@property (nullable, readonly, copy) NSURL *executableURL;
@property (readonly, copy) NSString *bundlePath;
@property (nullable, readonly, copy) NSString *resourcePath;
@property (nullable, readonly, copy) NSString *executablePath;
- (nullable NSURL *)URLForResource:(nullable NSString *)name withExtension:(nullable NSString *)ext NS_SWIFT_NAME(url(forResource:withExtension:));
- (nullable NSString *)pathForResource:(nullable NSString *)name ofType:(nullable NSString *)ext NS_SWIFT_NAME(path(forResource:ofType:));
@property (nullable, readonly, copy) NSString *bundleIdentifier;
@property (nullable, readonly, copy) NSDictionary<NSString *, id> *infoDictionary;
- (nullable id)objectForInfoDictionaryKey:(NSString *)key;
@end

// https://developer.apple.com/documentation/foundation/operatingsystemversion
typedef struct {
    NSInteger majorVersion;
    NSInteger minorVersion;
    NSInteger patchVersion;
} NSOperatingSystemVersion NS_SWIFT_NAME(OperatingSystemVersion);

// https://developer.apple.com/documentation/foundation/processinfo
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(ProcessInfo)
@interface NSProcessInfo : NSObject
@property (class, readonly, strong) NSProcessInfo *processInfo;
@property (readonly, copy) NSDictionary<NSString *, NSString *> *environment;
@property (readonly, copy) NSArray<NSString *> *arguments;
@property (readonly, copy) NSString *hostName;
@property (copy) NSString *processName;
@property (readonly) int processIdentifier;
@property (readonly, copy) NSString *globallyUniqueString;
@property (readonly, copy) NSString *operatingSystemVersionString;
@property (readonly) NSOperatingSystemVersion operatingSystemVersion;
@property (readonly) NSUInteger processorCount;
@property (readonly) NSUInteger activeProcessorCount;
@property (readonly) unsigned long long physicalMemory;
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version NS_SWIFT_NAME(isOperatingSystemAtLeast(_:));
@property (readonly) NSTimeInterval systemUptime;
@property (readonly, getter=isLowPowerModeEnabled) BOOL lowPowerModeEnabled;
// https://developer.apple.com/documentation/foundation/processinfo/username
@property (readonly, copy) NSString *userName MACOS_ONLY;
@property (readonly, copy) NSString *fullUserName MACOS_ONLY;
@end

// https://developer.apple.com/documentation/foundation/process/terminationreason-swift.enum
typedef NS_ENUM(NSInteger, NSTaskTerminationReason) {
    NSTaskTerminationReasonExit = 1,
    NSTaskTerminationReasonUncaughtSignal = 2
} NS_SWIFT_NAME(Process.TerminationReason) MACOS_ONLY;

// https://developer.apple.com/documentation/foundation/process
// Not Sendable: the page lists no such conformance.
MACOS_ONLY
NS_SWIFT_NAME(Process)
@interface NSTask : NSObject
- (instancetype)init NS_DESIGNATED_INITIALIZER;
@property (nullable, copy) NSURL *executableURL;
@property (nullable, copy) NSArray<NSString *> *arguments;
@property (nullable, copy) NSDictionary<NSString *, NSString *> *environment;
@property (nullable, copy) NSURL *currentDirectoryURL;
@property (nullable, retain) id standardInput;
@property (nullable, retain) id standardOutput;
@property (nullable, retain) id standardError;
- (BOOL)launchAndReturnError:(out NSError **_Nullable)error NS_SWIFT_NAME(run());
- (void)interrupt;
- (void)terminate;
- (BOOL)suspend;
- (BOOL)resume;
@property (readonly) int processIdentifier;
@property (readonly, getter=isRunning) BOOL running;
@property (readonly) int terminationStatus;
@property (readonly) NSTaskTerminationReason terminationReason;
// https://developer.apple.com/documentation/foundation/process/terminationhandler
@property (nullable, copy) void (NS_SWIFT_SENDABLE ^terminationHandler)(NSTask *);
@property NSQualityOfService qualityOfService;
- (void)waitUntilExit;
@end

// https://developer.apple.com/documentation/foundation/jsonserialization/readingoptions
typedef NS_OPTIONS(NSUInteger, NSJSONReadingOptions) {
    NSJSONReadingMutableContainers = (1UL << 0),
    NSJSONReadingMutableLeaves = (1UL << 1),
    NSJSONReadingFragmentsAllowed = (1UL << 2),
    NSJSONReadingJSON5Allowed = (1UL << 3),
    NSJSONReadingTopLevelDictionaryAssumed = (1UL << 4)
} NS_SWIFT_NAME(JSONSerialization.ReadingOptions);

// https://developer.apple.com/documentation/foundation/jsonserialization/writingoptions
typedef NS_OPTIONS(NSUInteger, NSJSONWritingOptions) {
    NSJSONWritingPrettyPrinted = (1UL << 0),
    NSJSONWritingSortedKeys = (1UL << 1),
    NSJSONWritingFragmentsAllowed = (1UL << 2),
    NSJSONWritingWithoutEscapingSlashes = (1UL << 3)
} NS_SWIFT_NAME(JSONSerialization.WritingOptions);

// https://developer.apple.com/documentation/foundation/jsonserialization
NS_SWIFT_NAME(JSONSerialization)
@interface NSJSONSerialization : NSObject
+ (BOOL)isValidJSONObject:(id)obj;
+ (nullable NSData *)dataWithJSONObject:(id)obj options:(NSJSONWritingOptions)opt error:(NSError **)error;
+ (nullable id)JSONObjectWithData:(NSData *)data options:(NSJSONReadingOptions)opt error:(NSError **)error;
@end

// https://developer.apple.com/documentation/foundation/formatter
NS_SWIFT_NAME(Formatter)
@interface NSFormatter : NSObject <NSCopying, NSCoding>
- (nullable NSString *)stringForObjectValue:(nullable id)obj;
@end

// https://developer.apple.com/documentation/foundation/dateformatter/style
typedef NS_ENUM(NSUInteger, NSDateFormatterStyle) {
    NSDateFormatterNoStyle NS_SWIFT_NAME(none) = 0,
    NSDateFormatterShortStyle NS_SWIFT_NAME(short) = 1,
    NSDateFormatterMediumStyle NS_SWIFT_NAME(medium) = 2,
    NSDateFormatterLongStyle NS_SWIFT_NAME(long) = 3,
    NSDateFormatterFullStyle NS_SWIFT_NAME(full) = 4
} NS_SWIFT_NAME(DateFormatter.Style);

// https://developer.apple.com/documentation/foundation/dateformatter
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(DateFormatter)
@interface NSDateFormatter : NSFormatter
- (NSString *)stringFromDate:(NSDate *)date;
- (nullable NSDate *)dateFromString:(NSString *)string;
@property (null_resettable, copy) NSString *dateFormat;
@property NSDateFormatterStyle dateStyle;
@property NSDateFormatterStyle timeStyle;
@property (null_resettable, copy) NSLocale *locale;
@property (null_resettable, copy) NSTimeZone *timeZone;
@property (null_resettable, copy) NSCalendar *calendar;
@property (getter=isLenient) BOOL lenient;
@end

// https://developer.apple.com/documentation/foundation/xmlparserdelegate
NS_SWIFT_NAME(XMLParserDelegate)
@protocol NSXMLParserDelegate <NSObject>
@end

// https://developer.apple.com/documentation/foundation/xmlparser
NS_SWIFT_NAME(XMLParser)
@interface NSXMLParser : NSObject
- (nullable instancetype)initWithContentsOfURL:(NSURL *)url;
- (instancetype)initWithData:(NSData *)data NS_DESIGNATED_INITIALIZER;
@property (nullable, assign) id<NSXMLParserDelegate> delegate;
@property BOOL shouldProcessNamespaces;
- (BOOL)parse;
- (void)abortParsing;
@property (nullable, readonly, copy) NSError *parserError;
@end

NS_ASSUME_NONNULL_END
