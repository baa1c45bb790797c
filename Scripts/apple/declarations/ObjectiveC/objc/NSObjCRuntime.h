// Types of the Objective-C runtime.
#pragma once

// https://developer.apple.com/documentation/objectivec/bool
// https://developer.apple.com/documentation/objectivec/nsinteger
// https://developer.apple.com/documentation/objectivec/nsuinteger
#if __LP64__
typedef long NSInteger;
typedef unsigned long NSUInteger;
#else
typedef int NSInteger;
typedef unsigned int NSUInteger;
#endif

typedef struct objc_class *Class;
typedef struct objc_selector *SEL;
#if defined(__OBJC_BOOL_IS_BOOL) && __OBJC_BOOL_IS_BOOL
typedef _Bool BOOL;
#else
typedef signed char BOOL;
#endif
#define YES __objc_yes
#define NO __objc_no
typedef id (*IMP)(id, SEL, ...);

#define NSIntegerMax 9223372036854775807L
