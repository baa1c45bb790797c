// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

#if TSAN
    // ThreadSanitizer cannot see the slow path of `Mutex` on Linux, which lives in a library that is not instrumented.
    // These two tell it of the order which the lock does establish.
    @_silgen_name("__tsan_acquire") @usableFromInline func sanitizerAcquire(_ address: UnsafeRawPointer)
    @_silgen_name("__tsan_release") @usableFromInline func sanitizerRelease(_ address: UnsafeRawPointer)
#endif

/// A value that can only be reached while its lock is held.
///
/// The one lock of the package. What runs under it is short, never calls anything that a user wrote (the release of a
/// user's object included: hand such objects out of the closure and let them go there), and never takes a lock that
/// `Docs/Design/Concurrency.md` ranks before its own.
///
/// All of it is inlinable, so that other modules lock at no more cost than this one: without that, each of their calls
/// looks up the descriptions of the generic types in it, which takes longer than the lock.
@usableFromInline
package struct Locked<Value>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Unchecked<Value>>

    // Taken over and not copied: each part of it that is an object would be held and let go of once more.
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
            let result = try mutex.withLockIfAvailable {
                (box: inout Unchecked<Value>) throws(Failure) -> Unchecked<Result> in
                try run(body, on: &box)
            }
            if let result { return result.value }
            return try waitAndRun(body)
        #else
            return try mutex.withLock { (box: inout Unchecked<Value>) throws(Failure) -> Unchecked<Result> in
                try run(body, on: &box)
            }.value
        #endif
    }

    #if os(Linux) || os(Android)
        /// Runs `body` when another thread has given the lock back: see ``LockWait``.
        @inlinable @inline(never)
        borrowing func waitAndRun<Result, Failure: Error>(
            _ body: (inout Value) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            var wait = LockWait()
            while !wait.mustBlock {
                wait.letOthersRun()
                let result = try mutex.withLockIfAvailable {
                    (box: inout Unchecked<Value>) throws(Failure) -> Unchecked<Result> in
                    try run(body, on: &box)
                }
                if let result { return result.value }
            }
            // The lock may be handed over to this thread, so what is to be done must be done now: if the thread gave the lock
            // back first, threads could hand it over to each other without ever doing anything.
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
            // Of the lock and not of the value: to take that one's address is an access already.
            let identity = withUnsafePointer(to: self) { UnsafeRawPointer($0) }
            sanitizerAcquire(identity)
            defer { sanitizerRelease(identity) }
        #endif
        return Unchecked(try body(&box.value))
    }
}

/// The wait of a thread for a lock that another thread holds, on Linux.
///
/// `Mutex` there hands the lock to a thread that waits in the kernel: that thread holds the lock from then on, although it does
/// not run yet. All other threads that want the lock meanwhile have to wait in the kernel, too. Once this has begun, the threads
/// take turns, and each turn takes as long as the system needs to wake a thread. On a busy machine that made a group of 40,000
/// children ten times as slow.
///
/// So a thread tries again for about a microsecond, then sleeps for moments between its attempts, and after 50 attempts waits in
/// the kernel. If a thread with a real-time priority waits there, the kernel lends that priority to the thread that holds the
/// lock. It does not lend nice values. The thread does not call `sched_yield()` instead: on a machine whose processors are busy
/// that costs it its turn, which is 4 ms, and an urgent operation would wait for so long to be added.
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
            // With the system's slack it is about 50 microseconds.
            usleep(1)
            return
        }
        // What the lock guards takes so long in most cases.
        let place = Atomic(0)
        for _ in 0..<100 { _ = place.load(ordering: .acquiring) }
    }
}

/// Carries a value through `Mutex`, whose own signatures ask for values that nobody else can reach.
@usableFromInline
struct Unchecked<Value>: @unchecked Sendable {
    // Sendable: the value inside is only ever touched under the mutex, and what leaves it is the caller's to share.

    @usableFromInline var value: Value

    @inlinable @inline(__always)
    init(_ value: consuming Value) { self.value = value }
}

#if !canImport(Darwin)
    /// Runs a closure.
    ///
    /// Only Apple platforms have pools of objects that are released later.
    package func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }
#endif

#if DEBUG
    /// Reports each queue and each operation that is made, so that tests can check that all of them are freed.
    package enum LifetimeProbe {
        /// A closure that is called with each object made in the task, in debug builds only.
        ///
        /// The default is nil.
        @TaskLocal package static var note: (@Sendable (AnyObject) -> Void)?
    }
#endif
