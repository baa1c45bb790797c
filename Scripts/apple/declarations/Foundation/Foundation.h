// Our declarations of Foundation: its Objective-C classes and protocols. The value types and the methods that exist only in Swift are in
// the Swift files of this folder. Each declaration is below the URL of the page that documents it. One URL is enough for all members that
// the page lists.

#pragma once

#import <CoreFoundation/CoreFoundation.h>
#import <dispatch/dispatch.h>
#import <objc/NSObjCRuntime.h>
#import <objc/NSObject.h>
#include <stdint.h>
#include <sys/types.h>

#import "Macros.h"

#import "Values.h"
#import "Errors.h"
#import "Progress.h"
#import "Operations.h"
#import "Threads.h"
#import "Files.h"
#import "System.h"
#import "Requests.h"
#import "Authentication.h"
#import "Sessions.h"
