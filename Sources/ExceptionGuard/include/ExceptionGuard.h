// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#ifndef OPERATIONKIT_EXCEPTION_GUARD_H
#define OPERATIONKIT_EXCEPTION_GUARD_H

#if defined(__APPLE__)

#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// A class that creates tasks of a `URLSession` and turns exceptions into errors.
///
/// Foundation raises an Objective-C exception if the session is invalidated, or if it cannot read a file. Swift cannot
/// catch exceptions, so each exception becomes an error here. Its description is the reason that Foundation gives.
@interface OKTaskMaker : NSObject

+ (nullable NSURLSessionTask *)dataTaskIn:(NSURLSession *)session
                                  request:(NSURLRequest *)request
                                    error:(NSError **)error NS_SWIFT_NAME(dataTask(in:request:));

+ (nullable NSURLSessionTask *)uploadTaskIn:(NSURLSession *)session
                                    request:(NSURLRequest *)request
                                       data:(NSData *)data
                                      error:(NSError **)error NS_SWIFT_NAME(uploadTask(in:request:data:));

+ (nullable NSURLSessionTask *)uploadTaskIn:(NSURLSession *)session
                                    request:(NSURLRequest *)request
                                       file:(NSURL *)file
                                      error:(NSError **)error NS_SWIFT_NAME(uploadTask(in:request:file:));

+ (nullable NSURLSessionTask *)downloadTaskIn:(NSURLSession *)session
                                      request:(NSURLRequest *)request
                                        error:(NSError **)error NS_SWIFT_NAME(downloadTask(in:request:));

+ (nullable NSURLSessionTask *)downloadTaskIn:(NSURLSession *)session
                                   resumeData:(NSData *)resumeData
                                        error:(NSError **)error NS_SWIFT_NAME(downloadTask(in:resumeData:));

@end

NS_ASSUME_NONNULL_END

#endif

#endif
