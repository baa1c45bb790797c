// Our declarations of ImageIO.
// https://developer.apple.com/documentation/imageio

#pragma once

#include <CoreFoundation/CoreFoundation.h>
#include <CoreGraphics/CoreGraphics.h>

CF_ASSUME_NONNULL_BEGIN
CF_IMPLICIT_BRIDGING_ENABLED

// https://developer.apple.com/documentation/imageio/cgimagesource
typedef struct __attribute__((objc_bridge(id))) CGImageSource *CGImageSourceRef;

// https://developer.apple.com/documentation/imageio/cgimagesourcecreatewithdata(_:_:)
extern CGImageSourceRef _Nullable CGImageSourceCreateWithData(CFDataRef data, CFDictionaryRef _Nullable options);
// https://developer.apple.com/documentation/imageio/cgimagesourcegetcount(_:)
extern size_t CGImageSourceGetCount(CGImageSourceRef isrc);
// https://developer.apple.com/documentation/imageio/cgimagesourcecreateimageatindex(_:_:_:)
extern CGImageRef _Nullable CGImageSourceCreateImageAtIndex(
    CGImageSourceRef isrc, size_t index, CFDictionaryRef _Nullable options);

// https://developer.apple.com/documentation/imageio/kcgimagesourceshouldcacheimmediately
extern const CFStringRef kCGImageSourceShouldCacheImmediately;
// https://developer.apple.com/documentation/imageio/kcgimagesourceshouldcache
extern const CFStringRef kCGImageSourceShouldCache;

CF_IMPLICIT_BRIDGING_DISABLED
CF_ASSUME_NONNULL_END
