// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#include "ExceptionGuard.h"

#if defined(__APPLE__)

@implementation OKTaskMaker

+ (nullable NSURLSessionTask *)dataTaskIn:(NSURLSession *)session
                                  request:(NSURLRequest *)request
                                    error:(NSError **)error {
    return [self make:^{ return [session dataTaskWithRequest:request]; } error:error];
}

+ (nullable NSURLSessionTask *)uploadTaskIn:(NSURLSession *)session
                                    request:(NSURLRequest *)request
                                       data:(NSData *)data
                                      error:(NSError **)error {
    return [self make:^{ return [session uploadTaskWithRequest:request fromData:data]; } error:error];
}

+ (nullable NSURLSessionTask *)uploadTaskIn:(NSURLSession *)session
                                    request:(NSURLRequest *)request
                                       file:(NSURL *)file
                                      error:(NSError **)error {
    return [self make:^{ return [session uploadTaskWithRequest:request fromFile:file]; } error:error];
}

+ (nullable NSURLSessionTask *)downloadTaskIn:(NSURLSession *)session
                                      request:(NSURLRequest *)request
                                        error:(NSError **)error {
    return [self make:^{ return [session downloadTaskWithRequest:request]; } error:error];
}

+ (nullable NSURLSessionTask *)downloadTaskIn:(NSURLSession *)session
                                   resumeData:(NSData *)resumeData
                                        error:(NSError **)error {
    return [self make:^{ return [session downloadTaskWithResumeData:resumeData]; } error:error];
}

+ (nullable NSURLSessionTask *)make:(NSURLSessionTask * (^)(void))make error:(NSError **)error {
    @try {
        return make();
    } @catch (NSException *exception) {
        if (error != NULL) {
            NSString *reason = exception.reason ?: exception.name;
            NSDictionary *details = [NSDictionary dictionaryWithObject:reason forKey:NSLocalizedDescriptionKey];
            *error = [[NSError alloc] initWithDomain:exception.name code:1 userInfo:details];
        }
        return NULL;
    }
}

@end

#endif
