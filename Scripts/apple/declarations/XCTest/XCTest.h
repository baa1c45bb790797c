// Our declarations of XCTest: its classes.
// https://developer.apple.com/documentation/xctest

#pragma once

#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

// https://developer.apple.com/documentation/xctest/xctest
@interface XCTest : NSObject
@property (readonly) NSUInteger testCaseCount;
@property (readonly, copy) NSString *name;
- (void)setUp;
- (void)tearDown;
@end

// https://developer.apple.com/documentation/xctest/xctestcase
@interface XCTestCase : XCTest
@property BOOL continueAfterFailure;
@end

NS_ASSUME_NONNULL_END
