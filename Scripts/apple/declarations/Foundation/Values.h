// The classes behind Swift's value types, and the collections.

NS_ASSUME_NONNULL_BEGIN

@class NSString, NSData, NSDate, NSURL, NSArray<ObjectType>, NSDictionary<KeyType, ObjectType>, NSLocale, NSTimeZone, NSCoder, NSError;

// https://developer.apple.com/documentation/foundation/timeinterval
typedef double NSTimeInterval NS_SWIFT_NAME(TimeInterval);

// https://developer.apple.com/documentation/foundation/comparisonresult
typedef NS_CLOSED_ENUM(NSInteger, NSComparisonResult) {
    NSOrderedAscending = -1L,
    NSOrderedSame,
    NSOrderedDescending
} NS_SWIFT_NAME(ComparisonResult);

// https://developer.apple.com/documentation/foundation/qualityofservice
typedef NS_ENUM(NSInteger, NSQualityOfService) {
    NSQualityOfServiceUserInteractive = 0x21,
    NSQualityOfServiceUserInitiated = 0x19,
    NSQualityOfServiceUtility = 0x11,
    NSQualityOfServiceBackground = 0x09,
    NSQualityOfServiceDefault = -1
} NS_SWIFT_NAME(QualityOfService);

// https://developer.apple.com/documentation/foundation/nszone
typedef struct _NSZone NSZone;

// https://developer.apple.com/documentation/foundation/nscopying
@protocol NSCopying
- (id)copyWithZone:(nullable NSZone *)zone;
@end

// https://developer.apple.com/documentation/foundation/nsmutablecopying
@protocol NSMutableCopying
- (id)mutableCopyWithZone:(nullable NSZone *)zone;
@end

// https://developer.apple.com/documentation/foundation/nscoding
@protocol NSCoding
- (void)encodeWithCoder:(NSCoder *)coder;
- (nullable instancetype)initWithCoder:(NSCoder *)coder;
@end

// https://developer.apple.com/documentation/foundation/nssecurecoding
@protocol NSSecureCoding <NSCoding>
@required
@property (class, readonly) BOOL supportsSecureCoding;
@end

// https://developer.apple.com/documentation/foundation/nscoder
@interface NSCoder : NSObject
@end

// https://developer.apple.com/documentation/foundation/nsfastenumeration
typedef struct {
    unsigned long state;
    id __unsafe_unretained _Nullable *_Nullable itemsPtr;
    unsigned long *_Nullable mutationsPtr;
    unsigned long extra[5];
} NSFastEnumerationState;

@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState *)state
                                  objects:(id __unsafe_unretained _Nullable[_Nonnull])buffer
                                    count:(NSUInteger)len;
@end

// https://developer.apple.com/documentation/foundation/nsenumerator
@interface NSEnumerator<ObjectType> : NSObject <NSFastEnumeration>
- (nullable ObjectType)nextObject;
@property (readonly, copy) NSArray<ObjectType> *allObjects;
@end

// https://developer.apple.com/documentation/foundation/nsarray
__attribute__((swift_bridge("Swift.Array")))
@interface NSArray<__covariant ObjectType> : NSObject <NSCopying, NSMutableCopying, NSSecureCoding, NSFastEnumeration>
@property (readonly) NSUInteger count;
- (ObjectType)objectAtIndex:(NSUInteger)index;
- (instancetype)init NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
@end

// https://developer.apple.com/documentation/foundation/nsdictionary
__attribute__((swift_bridge("Swift.Dictionary")))
@interface NSDictionary<__covariant KeyType, __covariant ObjectType> : NSObject <NSCopying, NSMutableCopying, NSSecureCoding, NSFastEnumeration>
@property (readonly) NSUInteger count;
- (nullable ObjectType)objectForKey:(KeyType)aKey;
+ (instancetype)dictionaryWithObject:(ObjectType)object forKey:(KeyType<NSCopying>)key;
- (NSEnumerator<KeyType> *)keyEnumerator;
- (instancetype)init NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
@end

// https://developer.apple.com/documentation/foundation/nsmutabledictionary
@interface NSMutableDictionary<KeyType, ObjectType> : NSDictionary<KeyType, ObjectType>
- (void)removeObjectForKey:(KeyType)aKey;
- (void)setObject:(ObjectType)anObject forKey:(id<NSCopying>)aKey;
- (instancetype)init NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
@end

// https://developer.apple.com/documentation/foundation/nsset
__attribute__((swift_bridge("Swift.Set")))
@interface NSSet<__covariant ObjectType> : NSObject <NSCopying, NSMutableCopying, NSSecureCoding, NSFastEnumeration>
@property (readonly) NSUInteger count;
- (instancetype)init NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
@end

// https://developer.apple.com/documentation/foundation/nsnull
NS_SWIFT_SENDABLE
@interface NSNull : NSObject <NSCopying, NSSecureCoding>
+ (NSNull *)null;
@end

// https://developer.apple.com/documentation/foundation/nsvalue
@interface NSValue : NSObject <NSCopying, NSSecureCoding>
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
@end

// https://developer.apple.com/documentation/foundation/nsnumber
NS_SWIFT_SENDABLE
@interface NSNumber : NSValue
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithBool:(BOOL)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithInt:(int)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithInteger:(NSInteger)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithLongLong:(long long)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithUnsignedLongLong:(unsigned long long)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithChar:(char)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithUnsignedChar:(unsigned char)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithShort:(short)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithUnsignedShort:(unsigned short)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithUnsignedInt:(unsigned int)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithUnsignedInteger:(NSUInteger)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithFloat:(float)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
- (NSNumber *)initWithDouble:(double)value NS_SWIFT_NAME(init(value:)) NS_DESIGNATED_INITIALIZER;
@property (readonly) BOOL boolValue;
@property (readonly) char charValue NS_SWIFT_NAME(int8Value);
@property (readonly) unsigned char unsignedCharValue NS_SWIFT_NAME(uint8Value);
@property (readonly) short shortValue NS_SWIFT_NAME(int16Value);
@property (readonly) unsigned short unsignedShortValue NS_SWIFT_NAME(uint16Value);
@property (readonly) int intValue NS_SWIFT_NAME(int32Value);
@property (readonly) unsigned int unsignedIntValue NS_SWIFT_NAME(uint32Value);
@property (readonly) long long longLongValue NS_SWIFT_NAME(int64Value);
@property (readonly) unsigned long long unsignedLongLongValue NS_SWIFT_NAME(uint64Value);
@property (readonly) float floatValue;
@property (readonly) double doubleValue;
@property (readonly) NSInteger integerValue NS_SWIFT_NAME(intValue);
@property (readonly) NSUInteger unsignedIntegerValue NS_SWIFT_NAME(uintValue);
@property (readonly, copy) NSString *stringValue;
- (NSComparisonResult)compare:(NSNumber *)otherNumber;
- (BOOL)isEqualToNumber:(NSNumber *)number;
@end

// https://developer.apple.com/documentation/foundation/decimal
// The value of an `NSDecimalNumber`: a structure of C, with methods in Swift.
typedef struct {
    signed int _exponent : 8;
    unsigned int _length : 4;
    unsigned int _isNegative : 1;
    unsigned int _isCompact : 1;
    unsigned int _reserved : 18;
    unsigned short _mantissa[8];
} NSDecimal NS_SWIFT_NAME(Decimal);

// https://developer.apple.com/documentation/foundation/unichar
typedef unsigned short unichar;

// https://developer.apple.com/documentation/foundation/nsstring
__attribute__((swift_bridge("Swift.String")))
@interface NSString : NSObject <NSCopying, NSMutableCopying, NSSecureCoding>
@property (readonly) NSUInteger length;
- (unichar)characterAtIndex:(NSUInteger)index;
- (instancetype)init NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
// https://developer.apple.com/documentation/foundation/nsstring/lastpathcomponent
@property (readonly, copy) NSString *lastPathComponent;
@property (readonly, copy) NSString *pathExtension;
@property (readonly, copy) NSString *stringByDeletingLastPathComponent NS_SWIFT_NAME(deletingLastPathComponent);
@property (readonly, copy) NSString *stringByDeletingPathExtension NS_SWIFT_NAME(deletingPathExtension);
- (NSString *)stringByAppendingPathComponent:(NSString *)str NS_SWIFT_NAME(appendingPathComponent(_:));
@property (getter=isAbsolutePath, readonly) BOOL absolutePath;
// https://developer.apple.com/documentation/foundation/nsstring/expandingtildeinpath
@property (readonly, copy) NSString *stringByExpandingTildeInPath NS_SWIFT_NAME(expandingTildeInPath);
@end

// https://developer.apple.com/documentation/foundation/nsstring/compareoptions
typedef NS_OPTIONS(NSUInteger, NSStringCompareOptions) {
    NSCaseInsensitiveSearch NS_SWIFT_NAME(caseInsensitive) = 1,
    NSLiteralSearch NS_SWIFT_NAME(literal) = 2,
    NSBackwardsSearch NS_SWIFT_NAME(backwards) = 4,
    NSAnchoredSearch NS_SWIFT_NAME(anchored) = 8,
    NSNumericSearch NS_SWIFT_NAME(numeric) = 64,
    NSDiacriticInsensitiveSearch NS_SWIFT_NAME(diacriticInsensitive) = 128,
    NSWidthInsensitiveSearch NS_SWIFT_NAME(widthInsensitive) = 256,
    NSForcedOrderingSearch NS_SWIFT_NAME(forcedOrdering) = 512,
    NSRegularExpressionSearch NS_SWIFT_NAME(regularExpression) = 1024
} NS_SWIFT_NAME(NSString.CompareOptions);

// https://developer.apple.com/documentation/foundation/nsdata
__attribute__((swift_bridge("Data")))
@interface NSData : NSObject <NSCopying, NSMutableCopying, NSSecureCoding>
@property (readonly) NSUInteger length;
@property (readonly) const void *bytes __attribute__((objc_returns_inner_pointer));
@end

// https://developer.apple.com/documentation/foundation/nsdata/readingoptions
typedef NS_OPTIONS(NSUInteger, NSDataReadingOptions) {
    NSDataReadingMappedIfSafe = 1UL << 0,
    NSDataReadingUncached = 1UL << 1,
    NSDataReadingMappedAlways NS_SWIFT_NAME(alwaysMapped) = 1UL << 3
} NS_SWIFT_NAME(NSData.ReadingOptions);

// https://developer.apple.com/documentation/foundation/nsdata/writingoptions
typedef NS_OPTIONS(NSUInteger, NSDataWritingOptions) {
    NSDataWritingAtomic = 1UL << 0,
    NSDataWritingWithoutOverwriting = 1UL << 1,
    NSDataWritingFileProtectionNone NS_SWIFT_NAME(noFileProtection) = 0x10000000,
    NSDataWritingFileProtectionComplete NS_SWIFT_NAME(completeFileProtection) = 0x20000000,
    NSDataWritingFileProtectionCompleteUnlessOpen NS_SWIFT_NAME(completeFileProtectionUnlessOpen) = 0x30000000,
    NSDataWritingFileProtectionCompleteUntilFirstUserAuthentication NS_SWIFT_NAME(completeFileProtectionUntilFirstUserAuthentication) = 0x40000000,
    NSDataWritingFileProtectionMask NS_SWIFT_NAME(fileProtectionMask) = 0xf0000000
} NS_SWIFT_NAME(NSData.WritingOptions);

// https://developer.apple.com/documentation/foundation/nsdata/searchoptions
typedef NS_OPTIONS(NSUInteger, NSDataSearchOptions) {
    NSDataSearchBackwards = 1UL << 0,
    NSDataSearchAnchored = 1UL << 1
} NS_SWIFT_NAME(NSData.SearchOptions);

// https://developer.apple.com/documentation/foundation/nsdata/base64encodingoptions
typedef NS_OPTIONS(NSUInteger, NSDataBase64EncodingOptions) {
    NSDataBase64Encoding64CharacterLineLength NS_SWIFT_NAME(lineLength64Characters) = 1UL << 0,
    NSDataBase64Encoding76CharacterLineLength NS_SWIFT_NAME(lineLength76Characters) = 1UL << 1,
    NSDataBase64EncodingEndLineWithCarriageReturn NS_SWIFT_NAME(endLineWithCarriageReturn) = 1UL << 4,
    NSDataBase64EncodingEndLineWithLineFeed NS_SWIFT_NAME(endLineWithLineFeed) = 1UL << 5
} NS_SWIFT_NAME(NSData.Base64EncodingOptions);

// https://developer.apple.com/documentation/foundation/nsdata/base64decodingoptions
typedef NS_OPTIONS(NSUInteger, NSDataBase64DecodingOptions) {
    NSDataBase64DecodingIgnoreUnknownCharacters NS_SWIFT_NAME(ignoreUnknownCharacters) = 1UL << 0
} NS_SWIFT_NAME(NSData.Base64DecodingOptions);

// https://developer.apple.com/documentation/foundation/nsdate
NS_SWIFT_SENDABLE
__attribute__((swift_bridge("Date")))
@interface NSDate : NSObject <NSCopying, NSSecureCoding>
@property (readonly) NSTimeInterval timeIntervalSinceReferenceDate;
@end

// https://developer.apple.com/documentation/foundation/nsdateinterval
NS_SWIFT_SENDABLE
__attribute__((swift_bridge("DateInterval")))
@interface NSDateInterval : NSObject <NSCopying, NSSecureCoding>
@end

// https://developer.apple.com/documentation/foundation/nsurl
NS_SWIFT_SENDABLE
__attribute__((swift_bridge("URL")))
@interface NSURL : NSObject <NSSecureCoding, NSCopying>
- (nullable instancetype)initWithString:(NSString *)URLString;
@property (nullable, readonly, copy) NSString *absoluteString;
@property (nullable, readonly, copy) NSString *path;
@end

// https://developer.apple.com/documentation/foundation/nsurlcomponents
__attribute__((swift_bridge("URLComponents")))
@interface NSURLComponents : NSObject <NSCopying>
@end

// https://developer.apple.com/documentation/foundation/nsurlqueryitem
NS_SWIFT_SENDABLE
__attribute__((swift_bridge("URLQueryItem")))
@interface NSURLQueryItem : NSObject <NSSecureCoding, NSCopying>
@end

// https://developer.apple.com/documentation/foundation/nsuuid
NS_SWIFT_SENDABLE
__attribute__((swift_bridge("UUID")))
@interface NSUUID : NSObject <NSCopying, NSSecureCoding>
@end

// https://developer.apple.com/documentation/foundation/nslocale
NS_SWIFT_SENDABLE
__attribute__((swift_bridge("Locale")))
@interface NSLocale : NSObject <NSCopying, NSSecureCoding>
@end

// https://developer.apple.com/documentation/foundation/nstimezone
__attribute__((swift_bridge("TimeZone")))
@interface NSTimeZone : NSObject <NSCopying, NSSecureCoding>
@end

// https://developer.apple.com/documentation/foundation/nscalendar
__attribute__((swift_bridge("Calendar")))
@interface NSCalendar : NSObject <NSCopying, NSSecureCoding>
@end

// https://developer.apple.com/documentation/foundation/nsdatecomponents
__attribute__((swift_bridge("DateComponents")))
@interface NSDateComponents : NSObject <NSCopying, NSSecureCoding>
@end

// https://developer.apple.com/documentation/foundation/nscharacterset
__attribute__((swift_bridge("CharacterSet")))
@interface NSCharacterSet : NSObject <NSCopying, NSMutableCopying, NSSecureCoding>
@end

// https://developer.apple.com/documentation/foundation/nskeyvalueobservingoptions
typedef NS_OPTIONS(NSUInteger, NSKeyValueObservingOptions) {
    NSKeyValueObservingOptionNew = 0x01,
    NSKeyValueObservingOptionOld = 0x02,
    NSKeyValueObservingOptionInitial = 0x04,
    NSKeyValueObservingOptionPrior = 0x08
};

// https://developer.apple.com/documentation/foundation/nskeyvaluechange
typedef NS_ENUM(NSUInteger, NSKeyValueChange) {
    NSKeyValueChangeSetting = 1,
    NSKeyValueChangeInsertion = 2,
    NSKeyValueChangeRemoval = 3,
    NSKeyValueChangeReplacement = 4
};

// https://developer.apple.com/documentation/foundation/nskeyvaluechangekey
typedef NSString *NSKeyValueChangeKey NS_TYPED_ENUM;
FOUNDATION_EXPORT NSKeyValueChangeKey const NSKeyValueChangeKindKey;
FOUNDATION_EXPORT NSKeyValueChangeKey const NSKeyValueChangeNewKey;
FOUNDATION_EXPORT NSKeyValueChangeKey const NSKeyValueChangeOldKey;

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class/observevalue(forkeypath:of:change:context:)
@interface NSObject (NSKeyValueObserving)
- (void)observeValueForKeyPath:(nullable NSString *)keyPath
                      ofObject:(nullable id)object
                        change:(nullable NSDictionary<NSKeyValueChangeKey, id> *)change
                       context:(nullable void *)context NS_SWIFT_NAME(observeValue(forKeyPath:of:change:context:));
@end

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class/addobserver(_:forkeypath:options:context:)
@interface NSObject (NSKeyValueObserverRegistration)
- (void)addObserver:(NSObject *)observer
         forKeyPath:(NSString *)keyPath
            options:(NSKeyValueObservingOptions)options
            context:(nullable void *)context;
- (void)removeObserver:(NSObject *)observer forKeyPath:(NSString *)keyPath;
- (void)removeObserver:(NSObject *)observer forKeyPath:(NSString *)keyPath context:(nullable void *)context;
@end

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class/willchangevalue(forkey:)
@interface NSObject (NSKeyValueObserverNotification)
- (void)willChangeValueForKey:(NSString *)key NS_SWIFT_NAME(willChangeValue(forKey:));
- (void)didChangeValueForKey:(NSString *)key NS_SWIFT_NAME(didChangeValue(forKey:));
@end

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class/keypathsforvaluesaffectingvalue(forkey:)
@interface NSObject (NSKeyValueObservingCustomization)
+ (NSSet<NSString *> *)keyPathsForValuesAffectingValueForKey:(NSString *)key;
+ (BOOL)automaticallyNotifiesObserversForKey:(NSString *)key;
@end

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class/value(forkey:)
@interface NSObject (NSKeyValueCoding)
- (nullable id)valueForKey:(NSString *)key NS_SWIFT_NAME(value(forKey:));
- (void)setValue:(nullable id)value forKey:(NSString *)key;
@end

NS_ASSUME_NONNULL_END
