// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

#if TSAN
    // ThreadSanitizer cannot see the slow path of `Mutex` on Linux, which is in a library without instrumentation.
    // These two functions report the order that the lock establishes.
    @_silgen_name("__tsan_acquire") @usableFromInline func sanitizerAcquire(_ address: UnsafeRawPointer)
    @_silgen_name("__tsan_release") @usableFromInline func sanitizerRelease(_ address: UnsafeRawPointer)
#endif

/// A value that can be accessed only while its lock is held.
///
/// This is the only lock of the package. Code under the lock must be short and must not call code of the user. The
/// release of a user's object may call such code, so return the object from the closure and release it there. The code
/// must not take a lock that `Docs/Design/Concurrency.md` ranks before this one.
///
/// All members are inlinable, so that a lock costs no more in other modules than in this one. Otherwise, each call
/// would look up the descriptions of its generic types, which takes longer than the lock.
@usableFromInline
package struct Locked<Value>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Unchecked<Value>>

    // The value is consumed and not copied, because a copy would retain and release each object in it.
    @inlinable @inline(__always)
    package init(_ value: consuming Value) {
        mutex = Mutex(Unchecked(value))
    }

    /// Runs `body` with exclusive access to the value.
    @inlinable @inline(__always)
    package borrowing func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        #if os(Linux) || os(Android)
            if let result = try runIfAvailable(body) { return result }
            return try waitAndRun(body)
        #else
            return try mutex.withLock { (box: inout Unchecked<Value>) throws(Failure) -> Unchecked<Result> in
                try run(body, on: &box)
            }.value
        #endif
    }

    /// Runs a closure under the lock, and releases its result after the lock, because a release may run the user's
    /// code.
    @inlinable @inline(__always)
    package borrowing func release<Left>(_ body: (inout Value) -> Left) { extendLifetime(withLock(body)) }

    #if os(Linux) || os(Android)
        /// Runs `body`, or returns `nil` if another thread holds the lock.
        @inlinable @inline(__always)
        borrowing func runIfAvailable<Result, Failure: Error>(
            _ body: (inout Value) throws(Failure) -> Result
        ) throws(Failure) -> Result? {
            // If the closure returned the result, the compiled code would copy and release it through the description
            // of its type, which takes longer than the lock.
            var result: Result?
            _ = try mutex.withLockIfAvailable { (box: inout Unchecked<Value>) throws(Failure) in
                result = try run(body, on: &box).value
            }
            return result
        }

        /// Runs `body` after another thread has released the lock.
        ///
        /// See ``LockWait``.
        @inlinable @inline(never)
        borrowing func waitAndRun<Result, Failure: Error>(
            _ body: (inout Value) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            var wait = LockWait()
            while !wait.mustBlock {
                wait.letOthersRun()
                if let result = try runIfAvailable(body) { return result }
            }
            // The system may hand the lock over to this thread, so the body must run now. If the thread released the
            // lock first, threads could hand it over to each other without making progress.
            return try mutex.withLock { (box: inout Unchecked<Value>) throws(Failure) -> Unchecked<Result> in
                try run(body, on: &box)
            }.value
        }
    #endif

    @inlinable @inline(__always)
    borrowing func run<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result, on box: inout Unchecked<Value>
    ) throws(Failure) -> Unchecked<Result> {
        #if TSAN
            // The address of the lock is used, because taking the address of the value is an access.
            let identity = withUnsafePointer(to: self) { UnsafeRawPointer($0) }
            sanitizerAcquire(identity)
            defer { sanitizerRelease(identity) }
        #endif
        return Unchecked(try body(&box.value))
    }
}

/// The wait of a thread for a lock that another thread holds, on Linux.
///
/// On Linux, `Mutex` hands the lock over to a thread that waits in the kernel. That thread then holds the lock,
/// although it is not running yet. All other threads that want the lock in the meantime must also wait in the kernel.
/// Once this has begun, the threads take turns, and each turn takes as long as the system needs to wake a thread. On a
/// busy machine, this made a group of 40,000 children ten times slower.
///
/// So a thread tries again for about a microsecond, then sleeps briefly between its attempts, and waits in the kernel
/// after 50 attempts. If a thread with a real-time priority waits there, the kernel lends that priority to the thread
/// that holds the lock. The kernel does not lend nice values. The thread does not call `sched_yield()` instead. On a
/// machine with busy processors, that call costs the thread its time slice of 4 ms, which would delay the addition of
/// an urgent operation.
@usableFromInline
struct LockWait {
    private static let shortAttempts = 10

    @usableFromInline var attempts = 0

    @inlinable @inline(__always)
    init() {}

    /// A Boolean value that indicates whether the thread must wait in the kernel.
    @inlinable @inline(__always)
    var mustBlock: Bool { attempts >= 50 }

    @usableFromInline @inline(never)
    mutating func letOthersRun() {
        attempts += 1
        guard attempts <= Self.shortAttempts else {
            // With the timer slack of the system, this takes about 50 microseconds.
            usleep(1)
            return
        }
        // In most cases, the code under a lock takes about this long.
        let place = Atomic(0)
        for _ in 0..<100 { _ = place.load(ordering: .acquiring) }
    }
}

/// A wrapper that is `Sendable` although its value is not.
///
/// ``Locked`` carries values through `Mutex` in it, because the signatures of `Mutex` require values that no other code
/// can reach. Any other code that uses the wrapper states in a comment why two threads never use the value at the same
/// time.
@usableFromInline
package struct Unchecked<Value>: @unchecked Sendable {
    // Sendable: the value is only used under the mutex, and the caller is responsible for values that leave it.

    @usableFromInline package var value: Value

    @inlinable @inline(__always)
    package init(_ value: consuming Value) { self.value = value }
}

#if !canImport(Darwin)
    /// Runs a closure, because only Apple platforms have autorelease pools.
    package func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }
#endif

#if DEBUG
    /// A probe that reports each queue and operation that is created, so that tests can check that all of them are
    /// freed.
    package enum LifetimeProbe {
        /// A closure that is called with each object that the task creates, in debug builds only.
        ///
        /// The default is `nil`.
        @TaskLocal package static var note: (@Sendable (AnyObject) -> Void)?
    }
#endif
