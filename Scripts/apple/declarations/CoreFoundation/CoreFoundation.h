// Our declarations of CoreFoundation: the types in the signatures of ImageIO's functions.
// https://developer.apple.com/documentation/corefoundation

#pragma once

#include <stdbool.h>

#ifndef CF_ASSUME_NONNULL_BEGIN
#define CF_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define CF_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#define CF_IMPLICIT_BRIDGING_ENABLED _Pragma("clang arc_cf_code_audited begin")
#define CF_IMPLICIT_BRIDGING_DISABLED _Pragma("clang arc_cf_code_audited end")
#endif

CF_ASSUME_NONNULL_BEGIN

// https://developer.apple.com/documentation/corefoundation/cfindex
typedef long CFIndex;
typedef unsigned long CFTypeID;
typedef unsigned long CFOptionFlags;

// https://developer.apple.com/documentation/corefoundation/cftyperef
typedef const void *CFTypeRef;

// https://developer.apple.com/documentation/corefoundation/cfallocator
typedef const struct __attribute__((objc_bridge(id))) __CFAllocator *CFAllocatorRef;
// https://developer.apple.com/documentation/corefoundation/cfstring
typedef const struct __attribute__((objc_bridge(NSString))) __CFString *CFStringRef;
// https://developer.apple.com/documentation/corefoundation/cfdata
typedef const struct __attribute__((objc_bridge(NSData))) __CFData *CFDataRef;
// https://developer.apple.com/documentation/corefoundation/cfarray
typedef const struct __attribute__((objc_bridge(NSArray))) __CFArray *CFArrayRef;
// https://developer.apple.com/documentation/corefoundation/cfdictionary
typedef const struct __attribute__((objc_bridge(NSDictionary))) __CFDictionary *CFDictionaryRef;
// https://developer.apple.com/documentation/corefoundation/cfboolean
typedef const struct __attribute__((objc_bridge(NSNumber))) __CFBoolean *CFBooleanRef;

// https://developer.apple.com/documentation/corefoundation/kcfbooleantrue
extern const CFBooleanRef _Null_unspecified kCFBooleanTrue;
extern const CFBooleanRef _Null_unspecified kCFBooleanFalse;

CF_ASSUME_NONNULL_END
