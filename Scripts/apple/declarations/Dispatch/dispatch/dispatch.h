// The classes of Dispatch. The methods of Swift are in Dispatch.swift.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <objc/NSObject.h>

#pragma clang assume_nonnull begin

#define OP_SENDABLE __attribute__((swift_attr("@Sendable")))
#define OP_NO_INIT \
    - (instancetype)init __attribute__((unavailable)) __attribute__((availability(swift, unavailable, message = "")));

// https://developer.apple.com/documentation/os/os_object
__attribute__((visibility("default")))
@interface OS_object : NSObject
OP_NO_INIT
@end

// https://developer.apple.com/documentation/dispatch/dispatchobject
__attribute__((swift_name("DispatchObject")))
@interface OS_dispatch_object : OS_object
OP_NO_INIT
@end
typedef OS_dispatch_object *dispatch_object_t;

// https://developer.apple.com/documentation/dispatch/dispatchqueue
OP_SENDABLE __attribute__((swift_name("DispatchQueue")))
@interface OS_dispatch_queue : OS_dispatch_object
OP_NO_INIT
@end
typedef OS_dispatch_queue *dispatch_queue_t;

// https://developer.apple.com/documentation/dispatch/dispatchgroup
OP_SENDABLE __attribute__((swift_name("DispatchGroup")))
@interface OS_dispatch_group : OS_dispatch_object
OP_NO_INIT
@end
typedef OS_dispatch_group *dispatch_group_t;

// https://developer.apple.com/documentation/dispatch/dispatchsemaphore
OP_SENDABLE __attribute__((swift_name("DispatchSemaphore")))
@interface OS_dispatch_semaphore : OS_dispatch_object
OP_NO_INIT
@end
typedef OS_dispatch_semaphore *dispatch_semaphore_t;

// https://developer.apple.com/documentation/dispatch/dispatchsourceprotocol
__attribute__((swift_name("DispatchSourceProtocol")))
@protocol OS_dispatch_source <NSObject>
@end
// https://developer.apple.com/documentation/dispatch/dispatchsourcetimer
__attribute__((swift_name("DispatchSourceTimer")))
@protocol OS_dispatch_source_timer <OS_dispatch_source>
@end
// https://developer.apple.com/documentation/dispatch/dispatchsourceread
__attribute__((swift_name("DispatchSourceRead")))
@protocol OS_dispatch_source_read <OS_dispatch_source>
@end
// https://developer.apple.com/documentation/dispatch/dispatchsourcewrite
__attribute__((swift_name("DispatchSourceWrite")))
@protocol OS_dispatch_source_write <OS_dispatch_source>
@end
// https://developer.apple.com/documentation/dispatch/dispatchsourcesignal
__attribute__((swift_name("DispatchSourceSignal")))
@protocol OS_dispatch_source_signal <OS_dispatch_source>
@end
// https://developer.apple.com/documentation/dispatch/dispatchsource
OP_SENDABLE __attribute__((swift_name("DispatchSource")))
@interface OS_dispatch_source
    : OS_dispatch_object <OS_dispatch_source, OS_dispatch_source_timer, OS_dispatch_source_read, OS_dispatch_source_write,
                          OS_dispatch_source_signal>
OP_NO_INIT
@end
typedef OS_dispatch_source *dispatch_source_t;

// https://developer.apple.com/documentation/dispatch/dispatchmain()
extern void dispatchMain(void) __attribute__((noreturn)) __attribute__((swift_attr("@_unavailableFromAsync")));

#pragma clang assume_nonnull end
