// Files: the file manager, handles, pipes and streams.

NS_ASSUME_NONNULL_BEGIN

// https://developer.apple.com/documentation/foundation/fileattributekey
typedef NSString *NSFileAttributeKey NS_TYPED_EXTENSIBLE_ENUM NS_SWIFT_NAME(FileAttributeKey);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileType NS_SWIFT_NAME(FileAttributeKey.type);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileSize NS_SWIFT_NAME(FileAttributeKey.size);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileModificationDate NS_SWIFT_NAME(FileAttributeKey.modificationDate);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileCreationDate NS_SWIFT_NAME(FileAttributeKey.creationDate);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileReferenceCount NS_SWIFT_NAME(FileAttributeKey.referenceCount);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileOwnerAccountName NS_SWIFT_NAME(FileAttributeKey.ownerAccountName);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileOwnerAccountID NS_SWIFT_NAME(FileAttributeKey.ownerAccountID);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileGroupOwnerAccountID NS_SWIFT_NAME(FileAttributeKey.groupOwnerAccountID);
FOUNDATION_EXPORT NSFileAttributeKey const NSFilePosixPermissions NS_SWIFT_NAME(FileAttributeKey.posixPermissions);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileSystemNumber NS_SWIFT_NAME(FileAttributeKey.systemNumber);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileSystemFileNumber NS_SWIFT_NAME(FileAttributeKey.systemFileNumber);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileSystemSize NS_SWIFT_NAME(FileAttributeKey.systemSize);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileSystemFreeSize NS_SWIFT_NAME(FileAttributeKey.systemFreeSize);
FOUNDATION_EXPORT NSFileAttributeKey const NSFileProtectionKey NS_SWIFT_NAME(FileAttributeKey.protectionKey);

// https://developer.apple.com/documentation/foundation/fileattributetype
typedef NSString *NSFileAttributeType NS_TYPED_ENUM NS_SWIFT_NAME(FileAttributeType);
FOUNDATION_EXPORT NSFileAttributeType const NSFileTypeDirectory NS_SWIFT_NAME(FileAttributeType.typeDirectory);
FOUNDATION_EXPORT NSFileAttributeType const NSFileTypeRegular NS_SWIFT_NAME(FileAttributeType.typeRegular);
FOUNDATION_EXPORT NSFileAttributeType const NSFileTypeSymbolicLink NS_SWIFT_NAME(FileAttributeType.typeSymbolicLink);
FOUNDATION_EXPORT NSFileAttributeType const NSFileTypeSocket NS_SWIFT_NAME(FileAttributeType.typeSocket);
FOUNDATION_EXPORT NSFileAttributeType const NSFileTypeCharacterSpecial NS_SWIFT_NAME(FileAttributeType.typeCharacterSpecial);
FOUNDATION_EXPORT NSFileAttributeType const NSFileTypeBlockSpecial NS_SWIFT_NAME(FileAttributeType.typeBlockSpecial);
FOUNDATION_EXPORT NSFileAttributeType const NSFileTypeUnknown NS_SWIFT_NAME(FileAttributeType.typeUnknown);

// https://developer.apple.com/documentation/foundation/fileprotectiontype
typedef NSString *NSFileProtectionType NS_TYPED_ENUM NS_SWIFT_NAME(FileProtectionType);
FOUNDATION_EXPORT NSFileProtectionType const NSFileProtectionNone;
FOUNDATION_EXPORT NSFileProtectionType const NSFileProtectionComplete;
FOUNDATION_EXPORT NSFileProtectionType const NSFileProtectionCompleteUnlessOpen;
FOUNDATION_EXPORT NSFileProtectionType const NSFileProtectionCompleteUntilFirstUserAuthentication;

// https://developer.apple.com/documentation/foundation/urlresourcekey
typedef NSString *NSURLResourceKey NS_TYPED_EXTENSIBLE_ENUM NS_SWIFT_NAME(URLResourceKey);
FOUNDATION_EXPORT NSURLResourceKey const NSURLNameKey;
FOUNDATION_EXPORT NSURLResourceKey const NSURLIsRegularFileKey;
FOUNDATION_EXPORT NSURLResourceKey const NSURLIsDirectoryKey;
FOUNDATION_EXPORT NSURLResourceKey const NSURLIsSymbolicLinkKey;
FOUNDATION_EXPORT NSURLResourceKey const NSURLFileSizeKey;
FOUNDATION_EXPORT NSURLResourceKey const NSURLContentModificationDateKey;
FOUNDATION_EXPORT NSURLResourceKey const NSURLIsExcludedFromBackupKey;
FOUNDATION_EXPORT NSURLResourceKey const NSURLVolumeAvailableCapacityKey;
// https://developer.apple.com/documentation/foundation/urlresourcekey/volumeavailablecapacityforimportantusagekey
FOUNDATION_EXPORT NSURLResourceKey const NSURLVolumeAvailableCapacityForImportantUsageKey
    __attribute__((availability(tvos, unavailable))) __attribute__((availability(watchos, unavailable)));

// https://developer.apple.com/documentation/foundation/filemanager/searchpathdirectory
typedef NS_ENUM(NSUInteger, NSSearchPathDirectory) {
    NSLibraryDirectory = 5,
    NSUserDirectory = 7,
    NSDocumentDirectory = 9,
    NSDesktopDirectory = 12,
    NSCachesDirectory = 13,
    NSApplicationSupportDirectory = 14,
    NSDownloadsDirectory = 15,
    NSItemReplacementDirectory = 99,
    NSAllLibrariesDirectory = 101,
    NSTrashDirectory = 102
} NS_SWIFT_NAME(FileManager.SearchPathDirectory);

// https://developer.apple.com/documentation/foundation/filemanager/searchpathdomainmask
typedef NS_OPTIONS(NSUInteger, NSSearchPathDomainMask) {
    NSUserDomainMask = 1,
    NSLocalDomainMask = 2,
    NSNetworkDomainMask = 4,
    NSSystemDomainMask = 8,
    NSAllDomainsMask = 0x0ffff
} NS_SWIFT_NAME(FileManager.SearchPathDomainMask);

// https://developer.apple.com/documentation/foundation/filemanager/directoryenumerationoptions
typedef NS_OPTIONS(NSUInteger, NSDirectoryEnumerationOptions) {
    NSDirectoryEnumerationSkipsSubdirectoryDescendants = 1UL << 0,
    NSDirectoryEnumerationSkipsPackageDescendants = 1UL << 1,
    NSDirectoryEnumerationSkipsHiddenFiles = 1UL << 2,
    NSDirectoryEnumerationIncludesDirectoriesPostOrder = 1UL << 3,
    NSDirectoryEnumerationProducesRelativePathURLs = 1UL << 4
} NS_SWIFT_NAME(FileManager.DirectoryEnumerationOptions);

// https://developer.apple.com/documentation/foundation/filemanager/itemreplacementoptions
typedef NS_OPTIONS(NSUInteger, NSFileManagerItemReplacementOptions) {
    NSFileManagerItemReplacementUsingNewMetadataOnly = 1UL << 0,
    NSFileManagerItemReplacementWithoutDeletingBackupItem = 1UL << 1
} NS_SWIFT_NAME(FileManager.ItemReplacementOptions);

// https://developer.apple.com/documentation/foundation/filemanagerdelegate
NS_SWIFT_NAME(FileManagerDelegate)
@protocol NSFileManagerDelegate <NSObject>
@end

// https://developer.apple.com/documentation/foundation/filemanager/directoryenumerator
NS_SWIFT_NAME(FileManager.DirectoryEnumerator)
@interface NSDirectoryEnumerator<ObjectType> : NSEnumerator<ObjectType>
@property (nullable, readonly, copy) NSDictionary<NSFileAttributeKey, id> *fileAttributes;
@property (nullable, readonly, copy) NSDictionary<NSFileAttributeKey, id> *directoryAttributes;
- (void)skipDescendents;
- (void)skipDescendants;
@property (readonly) NSUInteger level;
@end

// https://developer.apple.com/documentation/foundation/filemanager
NS_SWIFT_NAME(FileManager)
@interface NSFileManager : NSObject
@property (class, readonly, strong) NSFileManager *defaultManager NS_SWIFT_NAME(default);
@property (nullable, assign) id<NSFileManagerDelegate> delegate;
@property (readonly, copy) NSURL *temporaryDirectory;
@property (readonly, copy) NSURL *homeDirectoryForCurrentUser MACOS_ONLY;
@property (readonly, copy) NSString *currentDirectoryPath;
- (BOOL)changeCurrentDirectoryPath:(NSString *)path;
- (NSArray<NSURL *> *)URLsForDirectory:(NSSearchPathDirectory)directory inDomains:(NSSearchPathDomainMask)domainMask NS_SWIFT_NAME(urls(for:in:));
- (nullable NSURL *)URLForDirectory:(NSSearchPathDirectory)directory
                           inDomain:(NSSearchPathDomainMask)domain
                  appropriateForURL:(nullable NSURL *)url
                             create:(BOOL)shouldCreate
                              error:(NSError **)error NS_SWIFT_NAME(url(for:in:appropriateFor:create:));
- (nullable NSArray<NSURL *> *)contentsOfDirectoryAtURL:(NSURL *)url
                             includingPropertiesForKeys:(nullable NSArray<NSURLResourceKey> *)keys
                                                options:(NSDirectoryEnumerationOptions)mask
                                                  error:(NSError **)error NS_SWIFT_NAME(contentsOfDirectory(at:includingPropertiesForKeys:options:));
- (nullable NSArray<NSString *> *)contentsOfDirectoryAtPath:(NSString *)path error:(NSError **)error;
- (nullable NSArray<NSString *> *)subpathsOfDirectoryAtPath:(NSString *)path error:(NSError **)error;
- (nullable NSDictionary<NSFileAttributeKey, id> *)attributesOfItemAtPath:(NSString *)path error:(NSError **)error;
- (nullable NSDictionary<NSFileAttributeKey, id> *)attributesOfFileSystemForPath:(NSString *)path error:(NSError **)error;
- (BOOL)setAttributes:(NSDictionary<NSFileAttributeKey, id> *)attributes
         ofItemAtPath:(NSString *)path
                error:(NSError **)error;
- (BOOL)createDirectoryAtURL:(NSURL *)url
    withIntermediateDirectories:(BOOL)createIntermediates
                     attributes:(nullable NSDictionary<NSFileAttributeKey, id> *)attributes
                          error:(NSError **)error;
- (BOOL)createDirectoryAtPath:(NSString *)path
    withIntermediateDirectories:(BOOL)createIntermediates
                     attributes:(nullable NSDictionary<NSFileAttributeKey, id> *)attributes
                          error:(NSError **)error;
- (BOOL)createSymbolicLinkAtURL:(NSURL *)url withDestinationURL:(NSURL *)destURL error:(NSError **)error;
- (BOOL)createSymbolicLinkAtPath:(NSString *)path withDestinationPath:(NSString *)destPath error:(NSError **)error;
- (nullable NSString *)destinationOfSymbolicLinkAtPath:(NSString *)path error:(NSError **)error;
- (BOOL)copyItemAtPath:(NSString *)srcPath toPath:(NSString *)dstPath error:(NSError **)error;
- (BOOL)moveItemAtPath:(NSString *)srcPath toPath:(NSString *)dstPath error:(NSError **)error;
- (BOOL)linkItemAtPath:(NSString *)srcPath toPath:(NSString *)dstPath error:(NSError **)error;
- (BOOL)removeItemAtPath:(NSString *)path error:(NSError **)error;
- (BOOL)copyItemAtURL:(NSURL *)srcURL toURL:(NSURL *)dstURL error:(NSError **)error NS_SWIFT_NAME(copyItem(at:to:));
- (BOOL)moveItemAtURL:(NSURL *)srcURL toURL:(NSURL *)dstURL error:(NSError **)error NS_SWIFT_NAME(moveItem(at:to:));
- (BOOL)linkItemAtURL:(NSURL *)srcURL toURL:(NSURL *)dstURL error:(NSError **)error NS_SWIFT_NAME(linkItem(at:to:));
- (BOOL)removeItemAtURL:(NSURL *)URL error:(NSError **)error NS_SWIFT_NAME(removeItem(at:));
- (BOOL)fileExistsAtPath:(NSString *)path;
- (BOOL)fileExistsAtPath:(NSString *)path isDirectory:(nullable BOOL *)isDirectory;
- (BOOL)isReadableFileAtPath:(NSString *)path;
- (BOOL)isWritableFileAtPath:(NSString *)path;
- (BOOL)isExecutableFileAtPath:(NSString *)path;
- (BOOL)isDeletableFileAtPath:(NSString *)path;
- (BOOL)contentsEqualAtPath:(NSString *)path1 andPath:(NSString *)path2;
- (NSString *)displayNameAtPath:(NSString *)path;
- (nullable NSDirectoryEnumerator<NSString *> *)enumeratorAtPath:(NSString *)path;
- (nullable NSDirectoryEnumerator<NSURL *> *)enumeratorAtURL:(NSURL *)url
                                  includingPropertiesForKeys:(nullable NSArray<NSURLResourceKey> *)keys
                                                     options:(NSDirectoryEnumerationOptions)mask
                                                errorHandler:(nullable BOOL (^)(NSURL *url, NSError *error))handler NS_REFINED_FOR_SWIFT;
- (nullable NSArray<NSString *> *)subpathsAtPath:(NSString *)path;
- (nullable NSData *)contentsAtPath:(NSString *)path;
- (BOOL)createFileAtPath:(NSString *)path
                contents:(nullable NSData *)data
              attributes:(nullable NSDictionary<NSFileAttributeKey, id> *)attr;
@end

// https://developer.apple.com/documentation/foundation/filehandle
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(FileHandle)
@interface NSFileHandle : NSObject <NSSecureCoding>
@property (readonly, copy) NSData *availableData;
- (instancetype)initWithFileDescriptor:(int)fd closeOnDealloc:(BOOL)closeopt NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithCoder:(NSCoder *)coder NS_DESIGNATED_INITIALIZER;
- (nullable NSData *)readDataToEndOfFileAndReturnError:(out NSError **)error NS_REFINED_FOR_SWIFT;
- (nullable NSData *)readDataUpToLength:(NSUInteger)length error:(out NSError **)error NS_REFINED_FOR_SWIFT;
- (BOOL)writeData:(NSData *)data error:(out NSError **)error NS_REFINED_FOR_SWIFT;
- (BOOL)getOffset:(out unsigned long long *)offsetInFile error:(out NSError **)error NS_REFINED_FOR_SWIFT;
- (BOOL)seekToEndReturningOffset:(out unsigned long long *_Nullable)offsetInFile error:(out NSError **)error NS_REFINED_FOR_SWIFT;
- (BOOL)seekToOffset:(unsigned long long)offset error:(out NSError **)error;
- (BOOL)truncateAtOffset:(unsigned long long)offset error:(out NSError **)error;
- (BOOL)synchronizeAndReturnError:(out NSError **)error;
- (BOOL)closeAndReturnError:(out NSError **)error;
@end

// https://developer.apple.com/documentation/foundation/filehandle/standardinput
@interface NSFileHandle (NSFileHandleCreation)
@property (class, readonly, strong) NSFileHandle *fileHandleWithStandardInput NS_SWIFT_NAME(standardInput);
@property (class, readonly, strong) NSFileHandle *fileHandleWithStandardOutput NS_SWIFT_NAME(standardOutput);
@property (class, readonly, strong) NSFileHandle *fileHandleWithStandardError NS_SWIFT_NAME(standardError);
@property (class, readonly, strong) NSFileHandle *fileHandleWithNullDevice NS_SWIFT_NAME(nullDevice);
+ (nullable instancetype)fileHandleForReadingAtPath:(NSString *)path;
+ (nullable instancetype)fileHandleForWritingAtPath:(NSString *)path;
+ (nullable instancetype)fileHandleForUpdatingAtPath:(NSString *)path;
+ (nullable instancetype)fileHandleForReadingFromURL:(NSURL *)url error:(NSError **)error NS_SWIFT_NAME(init(forReadingFrom:));
+ (nullable instancetype)fileHandleForWritingToURL:(NSURL *)url error:(NSError **)error NS_SWIFT_NAME(init(forWritingTo:));
+ (nullable instancetype)fileHandleForUpdatingURL:(NSURL *)url error:(NSError **)error NS_SWIFT_NAME(init(forUpdating:));
@end

// https://developer.apple.com/documentation/foundation/filehandle/readabilityhandler
@interface NSFileHandle (NSFileHandleAsynchronousAccess)
@property (nullable, copy) void (NS_SWIFT_SENDABLE ^readabilityHandler)(NSFileHandle *);
@property (nullable, copy) void (NS_SWIFT_SENDABLE ^writeabilityHandler)(NSFileHandle *);
@end

// https://developer.apple.com/documentation/foundation/filehandle/filedescriptor
@interface NSFileHandle (NSFileHandlePlatformSpecific)
- (instancetype)initWithFileDescriptor:(int)fd;
@property (readonly) int fileDescriptor;
@end

// https://developer.apple.com/documentation/foundation/filehandle/readdatatoendoffile()
// Marked as deprecated for a future version, in favor of the throwing methods.
@interface NSFileHandle (NSFileHandleOlderMethods)
- (NSData *)readDataToEndOfFile;
- (NSData *)readDataOfLength:(NSUInteger)length;
- (void)writeData:(NSData *)data;
@property (readonly) unsigned long long offsetInFile;
- (unsigned long long)seekToEndOfFile;
- (void)seekToFileOffset:(unsigned long long)offset;
- (void)truncateFileAtOffset:(unsigned long long)offset;
- (void)synchronizeFile;
- (void)closeFile;
@end

// https://developer.apple.com/documentation/foundation/pipe
NS_SWIFT_SENDABLE
NS_SWIFT_NAME(Pipe)
@interface NSPipe : NSObject
@property (readonly, retain) NSFileHandle *fileHandleForReading;
@property (readonly, retain) NSFileHandle *fileHandleForWriting;
+ (NSPipe *)pipe NS_SWIFT_UNAVAILABLE("Use init() instead.");
@end

// https://developer.apple.com/documentation/foundation/streamdelegate
NS_SWIFT_NAME(StreamDelegate)
@protocol NSStreamDelegate <NSObject>
@end

// https://developer.apple.com/documentation/foundation/stream/status
typedef NS_ENUM(NSUInteger, NSStreamStatus) {
    NSStreamStatusNotOpen = 0,
    NSStreamStatusOpening = 1,
    NSStreamStatusOpen = 2,
    NSStreamStatusReading = 3,
    NSStreamStatusWriting = 4,
    NSStreamStatusAtEnd = 5,
    NSStreamStatusClosed = 6,
    NSStreamStatusError = 7
} NS_SWIFT_NAME(Stream.Status);

// https://developer.apple.com/documentation/foundation/stream
NS_SWIFT_NAME(Stream)
@interface NSStream : NSObject
- (void)open;
- (void)close;
@property (nullable, assign) id<NSStreamDelegate> delegate;
@property (readonly) NSStreamStatus streamStatus;
@property (nullable, readonly, copy) NSError *streamError;
@end

// https://developer.apple.com/documentation/foundation/inputstream
NS_SWIFT_NAME(InputStream)
@interface NSInputStream : NSStream
- (NSInteger)read:(uint8_t *)buffer maxLength:(NSUInteger)len;
- (BOOL)getBuffer:(uint8_t *_Nullable *_Nonnull)buffer length:(NSUInteger *)len;
@property (readonly) BOOL hasBytesAvailable;
- (instancetype)initWithData:(NSData *)data NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithURL:(NSURL *)url NS_DESIGNATED_INITIALIZER;
- (nullable instancetype)initWithFileAtPath:(NSString *)path;
@end

// https://developer.apple.com/documentation/foundation/outputstream
NS_SWIFT_NAME(OutputStream)
@interface NSOutputStream : NSStream
- (NSInteger)write:(const uint8_t *)buffer maxLength:(NSUInteger)len;
@property (readonly) BOOL hasSpaceAvailable;
@end

NS_ASSUME_NONNULL_END
