// The modules whose names a file gets with `import Foundation`.

@_exported import CoreFoundation
@_exported import Darwin
@_exported import Dispatch
@_exported import Foundation
@_exported import ObjectiveC
