// The macros in Foundation's headers that determine how Swift imports a declaration.
// https://developer.apple.com/documentation/swift/objective-c-and-c-code-customization

#pragma once

#ifndef NS_ASSUME_NONNULL_BEGIN
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#endif

// https://developer.apple.com/documentation/swift/grouping-related-objective-c-constants
#ifndef NS_ENUM
#define NS_ENUM(type, name) enum name : type name; enum __attribute__((enum_extensibility(open))) name : type
#endif
#ifndef NS_CLOSED_ENUM
#define NS_CLOSED_ENUM(type, name) enum name : type name; enum __attribute__((enum_extensibility(closed))) name : type
#endif
#ifndef NS_OPTIONS
#define NS_OPTIONS(type, name) enum name : type name; enum __attribute__((flag_enum, enum_extensibility(open))) name : type
#endif
#ifndef NS_TYPED_ENUM
#define NS_TYPED_ENUM __attribute__((swift_newtype(enum)))
#define NS_TYPED_EXTENSIBLE_ENUM __attribute__((swift_newtype(struct)))
#endif

// https://developer.apple.com/documentation/swift/renaming-objective-c-apis-for-swift
#ifndef NS_SWIFT_NAME
#define NS_SWIFT_NAME(name) __attribute__((swift_name(#name)))
#endif
// https://developer.apple.com/documentation/swift/improving-objective-c-api-declarations-for-swift
#ifndef NS_REFINED_FOR_SWIFT
#define NS_REFINED_FOR_SWIFT __attribute__((swift_private))
#endif
// https://developer.apple.com/documentation/swift/making-objective-c-apis-unavailable-in-swift
#ifndef NS_SWIFT_UNAVAILABLE
#define NS_SWIFT_UNAVAILABLE(text) __attribute__((availability(swift, unavailable, message = text)))
#endif

// https://developer.apple.com/documentation/swift/sendable
#ifndef NS_SWIFT_SENDABLE
#define NS_SWIFT_SENDABLE __attribute__((swift_attr("@Sendable")))
#define NS_SWIFT_NONSENDABLE __attribute__((swift_attr("@_nonSendable")))
#endif
// https://developer.apple.com/documentation/swift/calling-objective-c-apis-asynchronously
#ifndef NS_SWIFT_DISABLE_ASYNC
#define NS_SWIFT_DISABLE_ASYNC __attribute__((swift_async(none)))
#define NS_SWIFT_ASYNC_NAME(name) __attribute__((swift_async_name(#name)))
#define NS_SWIFT_UNAVAILABLE_FROM_ASYNC(text) __attribute__((swift_attr("@_unavailableFromAsync(message: \"" text "\")")))
#endif

#ifndef NS_DESIGNATED_INITIALIZER
#define NS_DESIGNATED_INITIALIZER __attribute__((objc_designated_initializer))
#endif
#ifndef NS_UNAVAILABLE
#define NS_UNAVAILABLE __attribute__((unavailable))
#endif
#ifndef FOUNDATION_EXPORT
#define FOUNDATION_EXPORT extern
#endif

// A declaration that is newer than the oldest platform we support.
#define AVAILABLE_FROM(macOS, iOS, tvOS, watchOS, visionOS) \
    __attribute__((availability(macos, introduced = macOS))) __attribute__((availability(ios, introduced = iOS))) \
    __attribute__((availability(tvos, introduced = tvOS))) __attribute__((availability(watchos, introduced = watchOS))) \
    __attribute__((availability(visionos, introduced = visionOS)))
// A declaration that exists only on macOS.
#define MACOS_ONLY \
    __attribute__((availability(ios, unavailable))) __attribute__((availability(tvos, unavailable))) \
    __attribute__((availability(watchos, unavailable))) __attribute__((availability(visionos, unavailable)))
// A declaration that is deprecated on every platform, from these versions on.
#define DEPRECATED_SINCE(macOS, iOS, tvOS, watchOS, visionOS, text) \
    __attribute__((availability(macos, introduced = 10.0, deprecated = macOS, message = text))) \
    __attribute__((availability(ios, introduced = 2.0, deprecated = iOS, message = text))) \
    __attribute__((availability(tvos, introduced = 9.0, deprecated = tvOS, message = text))) \
    __attribute__((availability(watchos, introduced = 2.0, deprecated = watchOS, message = text))) \
    __attribute__((availability(visionos, introduced = 1.0, deprecated = visionOS, message = text)))
