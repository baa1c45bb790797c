// Swift additions to Darwin's C library, which replace macros and functions with variable arguments.
// https://developer.apple.com/documentation/kernel

@_exported import Darwin

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/intro.2.html
public var errno: Int32 {
    get { __error().pointee }
    set { __error().pointee = newValue }
}

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/stdio.3.html
public var stdin: UnsafeMutablePointer<FILE> {
    get { fatalError() }
    set {}
}
public var stdout: UnsafeMutablePointer<FILE> {
    get { fatalError() }
    set {}
}
public var stderr: UnsafeMutablePointer<FILE> {
    get { fatalError() }
    set {}
}

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/open.2.html
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { -1 }
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { -1 }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { -1 }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { -1 }
public func fcntl(_ fd: Int32, _ cmd: Int32) -> Int32 { -1 }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ value: Int32) -> Int32 { -1 }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ ptr: UnsafeMutableRawPointer) -> Int32 { -1 }
public func ioctl(_ fd: CInt, _ request: UInt, _ value: CInt) -> CInt { -1 }
public func ioctl(_ fd: CInt, _ request: UInt, _ ptr: UnsafeMutableRawPointer) -> CInt { -1 }
public func ioctl(_ fd: CInt, _ request: UInt) -> CInt { -1 }

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/clock_gettime.3.html
public var CLOCK_REALTIME: clockid_t { _CLOCK_REALTIME }
public var CLOCK_MONOTONIC: clockid_t { _CLOCK_MONOTONIC }
public var CLOCK_MONOTONIC_RAW: clockid_t { _CLOCK_MONOTONIC_RAW }
public var CLOCK_MONOTONIC_RAW_APPROX: clockid_t { _CLOCK_MONOTONIC_RAW_APPROX }
public var CLOCK_UPTIME_RAW: clockid_t { _CLOCK_UPTIME_RAW }
public var CLOCK_UPTIME_RAW_APPROX: clockid_t { _CLOCK_UPTIME_RAW_APPROX }
public var CLOCK_PROCESS_CPUTIME_ID: clockid_t { _CLOCK_PROCESS_CPUTIME_ID }
public var CLOCK_THREAD_CPUTIME_ID: clockid_t { _CLOCK_THREAD_CPUTIME_ID }

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man4/tty.4.html
public var TIOCGWINSZ: UInt { 0x4008_7468 }

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/stat.2.html
public var S_IFMT: mode_t { 0o170000 }
public var S_IFIFO: mode_t { 0o010000 }
public var S_IFCHR: mode_t { 0o020000 }
public var S_IFDIR: mode_t { 0o040000 }
public var S_IFBLK: mode_t { 0o060000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFLNK: mode_t { 0o120000 }
public var S_IFSOCK: mode_t { 0o140000 }
public var S_IRWXU: mode_t { 0o000700 }
public var S_IRUSR: mode_t { 0o000400 }
public var S_IWUSR: mode_t { 0o000200 }
public var S_IXUSR: mode_t { 0o000100 }

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/sigaction.2.html
public var SIG_DFL: sig_t? { nil }
public var SIG_IGN: sig_t { unsafeBitCast(1, to: sig_t.self) }
public var SIG_ERR: sig_t { unsafeBitCast(-1, to: sig_t.self) }

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man2/mmap.2.html
public var MAP_FAILED: UnsafeMutableRawPointer! { UnsafeMutableRawPointer(bitPattern: -1) }

// https://developer.apple.com/library/archive/documentation/System/Conceptual/ManPages_iPhoneOS/man3/math.3.html
@_transparent public func fabs<T: FloatingPoint>(_ x: T) -> T { x.magnitude }
@_transparent public func sqrt<T: FloatingPoint>(_ x: T) -> T { x.squareRoot() }
@_transparent public func fma<T: FloatingPoint>(_ x: T, _ y: T, _ z: T) -> T { z.addingProduct(x, y) }
@_transparent public func ceil<T: FloatingPoint>(_ x: T) -> T { x.rounded(.up) }
@_transparent public func floor<T: FloatingPoint>(_ x: T) -> T { x.rounded(.down) }
@_transparent public func round<T: FloatingPoint>(_ x: T) -> T { x.rounded() }
@_transparent public func trunc<T: FloatingPoint>(_ x: T) -> T { x.rounded(.towardZero) }
public func fmod<T: FloatingPoint>(_ x: T, _ y: T) -> T { x.truncatingRemainder(dividingBy: y) }
public func exp(_ x: Float) -> Float { x }
public func log(_ x: Float) -> Float { x }
public func pow(_ x: Float, _ y: Float) -> Float { x }

// https://developer.apple.com/documentation/swift/darwinboolean
@frozen public struct DarwinBoolean: ExpressibleByBooleanLiteral, Sendable {
    var _value: UInt8
    public init(_ value: Bool) { _value = value ? 1 : 0 }
    public var boolValue: Bool { _value != 0 }
    public init(booleanLiteral value: Bool) { self.init(value) }
}
extension DarwinBoolean: Equatable {
    public static func == (lhs: DarwinBoolean, rhs: DarwinBoolean) -> Bool { lhs.boolValue == rhs.boolValue }
}
