// The root class and its protocol.
#pragma once

#include "NSObjCRuntime.h"

#pragma clang assume_nonnull begin

@class NSString, NSMethodSignature, NSInvocation;

// https://developer.apple.com/documentation/objectivec/nsobjectprotocol
@protocol NSObject
- (BOOL)isEqual:(nullable id)object;
@property (readonly) NSUInteger hash;
@property (readonly) Class superclass;
- (Class)class __attribute__((availability(swift, unavailable, message = "use 'type(of: anObject)' instead")));
- (instancetype)self;
- (BOOL)isProxy;
- (BOOL)isKindOfClass:(Class)aClass;
- (BOOL)isMemberOfClass:(Class)aClass;
- (BOOL)conformsToProtocol:(Protocol *)aProtocol;
- (BOOL)respondsToSelector:(SEL)aSelector;
- (instancetype)retain __attribute__((availability(swift, unavailable, message = "")));
- (oneway void)release __attribute__((availability(swift, unavailable, message = "")));
- (instancetype)autorelease __attribute__((availability(swift, unavailable, message = "")));
@property (readonly, copy) NSString *description;
@optional
@property (readonly, copy) NSString *debugDescription;
@end

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class
__attribute__((objc_root_class))
@interface NSObject <NSObject> {
    Class isa;
}
+ (void)initialize __attribute__((availability(swift, unavailable, message = "not permitted")));
+ (void)load __attribute__((availability(swift, unavailable, message = "not permitted")));
- (instancetype)init __attribute__((objc_designated_initializer));
+ (instancetype)new __attribute__((availability(swift, unavailable, message = "use object initializers instead")));
+ (instancetype)alloc __attribute__((availability(swift, unavailable, message = "use object initializers instead")));
- (void)dealloc __attribute__((availability(swift, unavailable, message = "use 'deinit' to define a de-initializer")));
- (id)copy;
- (id)mutableCopy;
+ (BOOL)instancesRespondToSelector:(SEL)aSelector;
+ (BOOL)conformsToProtocol:(Protocol *)protocol;
- (void)doesNotRecognizeSelector:(SEL)aSelector;
+ (BOOL)isSubclassOfClass:(Class)aClass;
+ (NSUInteger)hash;
+ (Class)superclass;
+ (Class)class __attribute__((availability(swift, unavailable, message = "use 'aClass.self' instead")));
+ (NSString *)description;
+ (NSString *)debugDescription;
@end

#pragma clang assume_nonnull end
