// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An object that waits until descriptors can be read or written, for use on one thread.
protocol Poller: AnyObject {
    /// Watches a descriptor, or changes the events for which it is watched.
    func watch(_ file: Int32, for interest: PollEvents)

    /// Stops watching a descriptor, before it is closed.
    func forget(_ file: Int32)

    /// Waits for an event for at most the given time, and calls `body` for each descriptor with events.
    ///
    /// - Parameters:
    ///   - milliseconds: The maximum time to wait, or -1 to wait without a limit.
    ///   - body: A closure that is called with a descriptor and its events.
    func wait(atMost milliseconds: Int32, _ body: (Int32, PollEvents) -> Void)

    /// Releases the resources of the system.
    func close()
}

/// The events of a descriptor, or the events for which a descriptor is watched.
struct PollEvents: OptionSet {
    let rawValue: UInt8

    static let readable = Self(rawValue: 1)
    static let writable = Self(rawValue: 2)
    /// An error, which is reported even if the descriptor is not watched for it.
    static let broken = Self(rawValue: 4)
}

#if !canImport(Darwin)
    /// A poller that uses epoll on Linux, with a cost that does not grow with the number of descriptors.
    ///
    /// Swift's modules omit these functions, so they are looked up in the running process.
    final class EpollPoller: Poller {
        private let calls: Calls
        private let instance: Int32
        private var interests: [Int32: PollEvents] = [:]
        private let events: UnsafeMutableRawBufferPointer

        /// Creates a poller, or returns nil if the system has no epoll or no free descriptor.
        init?() {
            guard let calls = Calls.shared else { return nil }
            let closeOnExec: Int32 = 0o2_000_000
            let instance = calls.create(closeOnExec)
            guard instance >= 0 else { return nil }
            self.calls = calls
            self.instance = instance
            events = .allocate(byteCount: Event.size * Self.batch, alignment: 8)
        }

        deinit { events.deallocate() }

        func watch(_ file: Int32, for interest: PollEvents) {
            let former = interests.updateValue(interest, forKey: file)
            if former == interest { return }
            withUnsafeTemporaryAllocation(byteCount: Event.size, alignment: 8) { event in
                Event.store(file, interest, in: event)
                _ = calls.control(instance, former == nil ? Call.add : Call.modify, file, event.baseAddress)
            }
        }

        func forget(_ file: Int32) {
            guard interests.removeValue(forKey: file) != nil else { return }
            withUnsafeTemporaryAllocation(byteCount: Event.size, alignment: 8) { event in
                _ = calls.control(instance, Call.remove, file, event.baseAddress)
            }
        }

        func wait(atMost milliseconds: Int32, _ body: (Int32, PollEvents) -> Void) {
            let count = calls.wait(instance, events.baseAddress, Int32(Self.batch), milliseconds)
            for index in 0..<max(Int(count), 0) {
                let event = UnsafeRawBufferPointer(rebasing: events[(index * Event.size)..<((index + 1) * Event.size)])
                let (file, result) = Event.load(from: event)
                body(file, result)
            }
        }

        func close() {
            _ = Foundation.close(instance)
        }

        private static let batch = 256

        private enum Call {
            static let add: Int32 = 1
            static let remove: Int32 = 2
            static let modify: Int32 = 3
        }

        /// `struct epoll_event`, with 32 bits of events and 64 bits of data, which are packed only on x86_64.
        private enum Event {
            #if arch(x86_64)
                static let size = 12
                static let dataOffset = 4
            #else
                static let size = 16
                static let dataOffset = 8
            #endif

            static func store(_ file: Int32, _ interest: PollEvents, in event: UnsafeMutableRawBufferPointer) {
                var flags: UInt32 = 0
                if interest.contains(.readable) { flags |= 0x1 }
                if interest.contains(.writable) { flags |= 0x4 }
                event.storeBytes(of: flags, toByteOffset: 0, as: UInt32.self)
                event.storeBytes(of: UInt64(UInt32(bitPattern: file)), toByteOffset: dataOffset, as: UInt64.self)
            }

            static func load(from event: UnsafeRawBufferPointer) -> (Int32, PollEvents) {
                let flags = event.loadUnaligned(fromByteOffset: 0, as: UInt32.self)
                let data = event.loadUnaligned(fromByteOffset: dataOffset, as: UInt64.self)
                var result: PollEvents = []
                if flags & 0x1 != 0 { result.insert(.readable) }
                if flags & 0x4 != 0 { result.insert(.writable) }
                if flags & 0x18 != 0 { result.insert(.broken) }
                return (Int32(truncatingIfNeeded: data), result)
            }
        }

        private struct Calls: Sendable {
            typealias Create = @convention(c) (Int32) -> Int32
            typealias Control = @convention(c) (Int32, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
            typealias Wait = @convention(c) (Int32, UnsafeMutableRawPointer?, Int32, Int32) -> Int32

            let create: Create
            let control: Control
            let wait: Wait

            static let shared: Calls? = {
                guard let create = dlsym(nil, "epoll_create1"), let control = dlsym(nil, "epoll_ctl"),
                    let wait = dlsym(nil, "epoll_wait")
                else { return nil }
                return Calls(
                    create: unsafeBitCast(create, to: Create.self), control: unsafeBitCast(control, to: Control.self),
                    wait: unsafeBitCast(wait, to: Wait.self))
            }()
        }
    }
#endif

/// A poller that uses `poll(2)`, with a cost that grows with the number of descriptors.
final class PollPoller: Poller {
    private var entries: [pollfd] = []
    private var places: [Int32: Int] = [:]

    func watch(_ file: Int32, for interest: PollEvents) {
        var events = Int16(0)
        if interest.contains(.readable) { events |= Int16(POLLIN) }
        if interest.contains(.writable) { events |= Int16(POLLOUT) }
        if let place = places[file] {
            entries[place].events = events
        } else {
            places[file] = entries.count
            entries.append(pollfd(fd: file, events: events, revents: 0))
        }
    }

    func forget(_ file: Int32) {
        guard let place = places.removeValue(forKey: file), let last = entries.popLast() else { return }
        guard place < entries.count else { return }
        entries[place] = last
        places[last.fd] = place
    }

    func wait(atMost milliseconds: Int32, _ body: (Int32, PollEvents) -> Void) {
        guard poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return }
        // The loop iterates over a copy, because handling an event changes the watched descriptors.
        for entry in entries where entry.revents != 0 {
            var result: PollEvents = []
            if entry.revents & Int16(POLLIN) != 0 { result.insert(.readable) }
            if entry.revents & Int16(POLLOUT) != 0 { result.insert(.writable) }
            if entry.revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0 { result.insert(.broken) }
            body(entry.fd, result)
        }
    }

    func close() {}
}
