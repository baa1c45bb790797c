// Our declarations of Foundation: its classes and protocols of Objective-C. The value types and the methods that exist only in Swift
// are in the Swift files beside this one. Each declaration stands below the address of the page that documents it. One address is
// enough for the members that this page lists.

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
