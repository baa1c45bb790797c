// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Portions of a body that were read ahead of being sent: how much to read next, and who waits for it.
///
/// One reads and one takes, each on a thread of its own; what is kept never exceeds two portions.
package struct ReadAhead {
    private static var kept: Int { 2 }

    private let length: Int64
    private let portion: Int
    private var ready = Fifo<[UInt8]>()
    /// How much of the first of them was taken.
    private var used = 0
    /// How many bytes were read, or are being read.
    private var asked: Int64 = 0
    /// How many of them there are, or were.
    private var filled: Int64 = 0
    /// Whether the first portion was asked for, and whether it came: there is one even of what is empty.
    private var wasAsked = false
    private var hasBegun = false
    private var reading = RepeatFlag()
    private var waker: BodyWaker?
    private var failure: NetworkError?

    package init(length: Int64, portion: Int) {
        self.length = length
        self.portion = portion
    }

    /// Fills a part of the buffer, or keeps the waker.
    ///
    /// True if somebody must begin to read.
    package mutating func take(
        into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker
    ) throws(NetworkError) -> (BodyPortion, reads: Bool) {
        guard let bytes = ready.first else {
            if let failure { throw failure }
            guard filled < length || !hasBegun else { return (.end, false) }
            self.waker = waker
            return (.notYet, beginReading())
        }
        let count = min(bytes.count - used, buffer.count)
        bytes.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[used..<used + count])) }
        used += count
        if used == bytes.count {
            _ = ready.popFirst()
            used = 0
        }
        return (.bytes(count), beginReading())
    }

    private var wantsMore: Bool { failure == nil && isUnasked && ready.count < Self.kept }
    private var isUnasked: Bool { asked < length || length == 0 && !wasAsked }

    private mutating func beginReading() -> Bool {
        wantsMore && reading.request()
    }

    /// What is to be read next, from where and how much; nil if nobody needs to read any more for now.
    package mutating func next() -> (offset: Int64, count: Int)? {
        guard wantsMore else {
            reading.stop()
            return nil
        }
        let offset = asked
        let count = Int(min(Int64(portion), length - offset))
        asked += Int64(count)
        wasAsked = true
        return (offset, count)
    }

    /// What `next` asked for was read.
    ///
    /// Whoever waits for it is to be woken.
    package mutating func filled(_ bytes: [UInt8]) -> BodyWaker? {
        hasBegun = true
        filled += Int64(bytes.count)
        if !bytes.isEmpty { ready.append(bytes) }
        return exchange(&waker, with: nil)
    }

    /// It could not be read.
    ///
    /// Whoever waits is to be woken and will learn of it.
    package mutating func failed(_ error: NetworkError) -> BodyWaker? {
        failure = error
        reading.stop()
        return exchange(&waker, with: nil)
    }
}
