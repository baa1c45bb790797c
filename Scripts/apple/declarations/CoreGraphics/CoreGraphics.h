// Our declarations of Core Graphics: the image that ImageIO decodes into.
// https://developer.apple.com/documentation/coregraphics

#pragma once

#include <CoreFoundation/CoreFoundation.h>
#include <stddef.h>

CF_ASSUME_NONNULL_BEGIN
CF_IMPLICIT_BRIDGING_ENABLED

// https://developer.apple.com/documentation/coregraphics/cgimage
// Not Sendable, which is stricter, because the page of the class lists no such conformance.
typedef struct __attribute__((objc_bridge(id))) CGImage *CGImageRef;

// https://developer.apple.com/documentation/coregraphics/cgimage/width
extern size_t CGImageGetWidth(CGImageRef _Nullable image) __attribute__((swift_name("getter:CGImageRef.width(self:)")));
// https://developer.apple.com/documentation/coregraphics/cgimage/height
extern size_t CGImageGetHeight(CGImageRef _Nullable image) __attribute__((swift_name("getter:CGImageRef.height(self:)")));

CF_IMPLICIT_BRIDGING_DISABLED
CF_ASSUME_NONNULL_END
