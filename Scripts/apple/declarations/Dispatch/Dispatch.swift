// The part of Dispatch that is written for Swift.

@_exported import Dispatch
import Darwin
import ObjectiveC

// https://developer.apple.com/documentation/dispatch/dispatchpredicate
public enum DispatchPredicate {
    case onQueue(DispatchQueue)
    case onQueueAsBarrier(DispatchQueue)
    case notOnQueue(DispatchQueue)
}

// https://developer.apple.com/documentation/dispatch/dispatchprecondition(condition:)
public func dispatchPrecondition(condition: @autoclosure () -> DispatchPredicate) {}

// https://developer.apple.com/documentation/dispatch/dispatchqos
public struct DispatchQoS: Equatable, Sendable {
    public let qosClass: QoSClass
    public let relativePriority: Int
    public static let background = DispatchQoS(qosClass: .background, relativePriority: 0)
    public static let utility = DispatchQoS(qosClass: .utility, relativePriority: 0)
    public static let `default` = DispatchQoS(qosClass: .default, relativePriority: 0)
    public static let userInitiated = DispatchQoS(qosClass: .userInitiated, relativePriority: 0)
    public static let userInteractive = DispatchQoS(qosClass: .userInteractive, relativePriority: 0)
    public static let unspecified = DispatchQoS(qosClass: .unspecified, relativePriority: 0)
    // https://developer.apple.com/documentation/dispatch/dispatchqos/qosclass
    public enum QoSClass: Sendable {
        case background, utility, `default`, userInitiated, userInteractive, unspecified
        public init?(rawValue: qos_class_t) { nil }
        public var rawValue: qos_class_t { fatalError() }
    }
    public init(qosClass: QoSClass, relativePriority: Int) {
        self.qosClass = qosClass
        self.relativePriority = relativePriority
    }
}

// https://developer.apple.com/documentation/dispatch/dispatchtime
public struct DispatchTime: Comparable, Sendable {
    public let rawValue: UInt64
    public static func now() -> DispatchTime { DispatchTime(uptimeNanoseconds: 0) }
    public static let distantFuture = DispatchTime(uptimeNanoseconds: .max)
    public init(uptimeNanoseconds: UInt64) { rawValue = uptimeNanoseconds }
    public var uptimeNanoseconds: UInt64 { rawValue }
    public static func < (a: DispatchTime, b: DispatchTime) -> Bool { a.rawValue < b.rawValue }
    public static func == (a: DispatchTime, b: DispatchTime) -> Bool { a.rawValue == b.rawValue }
    // https://developer.apple.com/documentation/dispatch/dispatchtime/advanced(by:)
    public func advanced(by n: DispatchTimeInterval) -> DispatchTime { self }
    public func distance(to other: DispatchTime) -> DispatchTimeInterval { .never }
}
public func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { time }
public func - (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { time }
public func + (time: DispatchTime, seconds: Double) -> DispatchTime { time }
public func - (time: DispatchTime, seconds: Double) -> DispatchTime { time }

// https://developer.apple.com/documentation/dispatch/dispatchwalltime
public struct DispatchWallTime: Comparable, Sendable {
    public let rawValue: UInt64
    public static func now() -> DispatchWallTime { DispatchWallTime(timespec: timespec()) }
    public static let distantFuture = DispatchWallTime(timespec: timespec())
    public init(timespec: timespec) { rawValue = 0 }
    public static func < (a: DispatchWallTime, b: DispatchWallTime) -> Bool { a.rawValue < b.rawValue }
    public static func == (a: DispatchWallTime, b: DispatchWallTime) -> Bool { a.rawValue == b.rawValue }
}
public func + (time: DispatchWallTime, interval: DispatchTimeInterval) -> DispatchWallTime { time }
public func + (time: DispatchWallTime, seconds: Double) -> DispatchWallTime { time }

// https://developer.apple.com/documentation/dispatch/dispatchtimeinterval
@frozen public enum DispatchTimeInterval: Equatable, Sendable {
    case seconds(Int)
    case milliseconds(Int)
    case microseconds(Int)
    case nanoseconds(Int)
    case never
}

// https://developer.apple.com/documentation/dispatch/dispatchtimeoutresult
@frozen public enum DispatchTimeoutResult: Sendable {
    case success
    case timedOut
}

// https://developer.apple.com/documentation/dispatch/dispatchworkitemflags
public struct DispatchWorkItemFlags: OptionSet, RawRepresentable, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let barrier = DispatchWorkItemFlags(rawValue: 1)
    public static let detached = DispatchWorkItemFlags(rawValue: 2)
    public static let assignCurrentContext = DispatchWorkItemFlags(rawValue: 4)
    public static let noQoS = DispatchWorkItemFlags(rawValue: 8)
    public static let inheritQoS = DispatchWorkItemFlags(rawValue: 16)
    public static let enforceQoS = DispatchWorkItemFlags(rawValue: 32)
}

// https://developer.apple.com/documentation/dispatch/dispatchspecifickey
public final class DispatchSpecificKey<T>: @unchecked Sendable {
    public init() {}
}

// https://developer.apple.com/documentation/dispatch/dispatchobject
extension DispatchObject {
    public func setTarget(queue: DispatchQueue?) {}
    public func activate() {}
    public func suspend() {}
    public func resume() {}
}

// https://developer.apple.com/documentation/dispatch/dispatchqueue
extension DispatchQueue {
    // https://developer.apple.com/documentation/dispatch/dispatchqueue/attributes
    public struct Attributes: OptionSet, Sendable {
        public let rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }
        public static let concurrent = Attributes(rawValue: 2)
        public static let initiallyInactive = Attributes(rawValue: 4)
    }
    // https://developer.apple.com/documentation/dispatch/dispatchqueue/autoreleasefrequency
    public enum AutoreleaseFrequency: Sendable { case inherit, workItem, never }
    // https://developer.apple.com/documentation/dispatch/dispatchqueue/globalqueuepriority
    public enum GlobalQueuePriority: Sendable { case high, `default`, low, background }

    public class var main: DispatchQueue { fatalError() }
    public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue { fatalError() }
    public convenience init(
        label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [],
        autoreleaseFrequency: AutoreleaseFrequency = .inherit, target: DispatchQueue? = nil
    ) { fatalError() }
    public var label: String { "" }
    public var qos: DispatchQoS { .default }
    @preconcurrency
    public func async(
        group: DispatchGroup? = nil, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
        execute work: @escaping @Sendable @convention(block) () -> Void
    ) {}
    public func sync<T>(execute work: () throws -> T) rethrows -> T { try work() }
    public func sync<T>(flags: DispatchWorkItemFlags, execute work: () throws -> T) rethrows -> T { try work() }
    public func sync(execute block: () -> Void) {}
    @preconcurrency
    public func asyncAfter(
        deadline: DispatchTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
        execute work: @escaping @Sendable @convention(block) () -> Void
    ) {}
    @preconcurrency
    public func asyncAfter(
        wallDeadline: DispatchWallTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
        execute work: @escaping @Sendable @convention(block) () -> Void
    ) {}
    public func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? { nil }
    public class func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? { nil }
    public func setSpecific<T>(key: DispatchSpecificKey<T>, value: T?) {}
    // https://developer.apple.com/documentation/dispatch/dispatchqueue/concurrentperform(iterations:execute:)
    public class func concurrentPerform(iterations: Int, execute work: (Int) -> Void) {}
}

// https://developer.apple.com/documentation/dispatch/dispatchgroup
extension DispatchGroup {
    public convenience init() { fatalError() }
    public func enter() {}
    public func leave() {}
    @preconcurrency
    public func notify(
        qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], queue: DispatchQueue,
        execute work: @escaping @Sendable @convention(block) () -> Void
    ) {}
    @available(*, noasync, message: "Use a TaskGroup instead")
    public func wait() {}
    @available(*, noasync, message: "Use a TaskGroup instead")
    public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { .success }
}

// https://developer.apple.com/documentation/dispatch/dispatchsemaphore
extension DispatchSemaphore {
    public convenience init(value: Int) { fatalError() }
    @discardableResult public func signal() -> Int { 0 }
    @available(*, noasync, message: "Await a Task handle instead")
    public func wait() {}
    @available(*, noasync, message: "Await a Task handle instead")
    public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { .success }
    @available(*, noasync, message: "Await a Task handle instead")
    public func wait(wallTimeout: DispatchWallTime) -> DispatchTimeoutResult { .success }
}

// https://developer.apple.com/documentation/dispatch/dispatchsource
extension DispatchSource {
    // https://developer.apple.com/documentation/dispatch/dispatchsource/timerflags
    public struct TimerFlags: OptionSet, RawRepresentable, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let strict = TimerFlags(rawValue: 1)
    }
    public class func makeTimerSource(flags: TimerFlags = [], queue: DispatchQueue? = nil) -> any DispatchSourceTimer {
        fatalError()
    }
    public class func makeReadSource(fileDescriptor: Int32, queue: DispatchQueue? = nil) -> any DispatchSourceRead {
        fatalError()
    }
    public class func makeWriteSource(fileDescriptor: Int32, queue: DispatchQueue? = nil) -> any DispatchSourceWrite {
        fatalError()
    }
    public class func makeSignalSource(signal: Int32, queue: DispatchQueue? = nil) -> any DispatchSourceSignal {
        fatalError()
    }
}

// https://developer.apple.com/documentation/dispatch/dispatchsourceprotocol
extension DispatchSourceProtocol {
    public typealias DispatchSourceHandler = @convention(block) () -> Void
    public func setEventHandler(
        qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], handler: DispatchSourceHandler?
    ) {}
    public func setCancelHandler(
        qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], handler: DispatchSourceHandler?
    ) {}
    public func setRegistrationHandler(
        qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], handler: DispatchSourceHandler?
    ) {}
    public func activate() {}
    public func cancel() {}
    public func resume() {}
    public func suspend() {}
    public var handle: UInt { 0 }
    public var mask: UInt { 0 }
    public var data: UInt { 0 }
    public var isCancelled: Bool { false }
}

// https://developer.apple.com/documentation/dispatch/dispatchsourcetimer
extension DispatchSourceTimer {
    public func schedule(
        deadline: DispatchTime, repeating interval: DispatchTimeInterval = .never, leeway: DispatchTimeInterval = .nanoseconds(0)
    ) {}
    public func schedule(
        deadline: DispatchTime, repeating interval: Double, leeway: DispatchTimeInterval = .nanoseconds(0)
    ) {}
    public func schedule(
        wallDeadline: DispatchWallTime, repeating interval: DispatchTimeInterval = .never,
        leeway: DispatchTimeInterval = .nanoseconds(0)
    ) {}
}
