// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The body of a request on its way out: opened when it is first asked for, and anew when it must be sent again.
package struct BodyOutlet {
    private enum State {
        case closed
        case open(BodyReader)
    }

    private let body: RequestBody
    private var state = State.closed
    /// How many bytes were given since it was opened.
    package private(set) var count: Int64 = 0

    package init(_ body: RequestBody) {
        self.body = body
    }

    package var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    /// Whether all of it was given; nil if it was not opened.
    package var isComplete: Bool? {
        if case .open(let reader) = state { reader.isComplete } else { nil }
    }

    /// Fills a part of the buffer.
    ///
    /// - Parameter waker: Wakes the transfer when there is more, if there was nothing.
    package mutating func read(
        into buffer: UnsafeMutableRawBufferPointer, waker: () -> BodyWaker
    ) throws(NetworkError) -> BodyPortion {
        let portion = try opened(waker).read(into: buffer)
        if case .bytes(let given) = portion { count += Int64(given) }
        return portion
    }

    private mutating func opened(_ waker: () -> BodyWaker) throws(NetworkError) -> BodyReader {
        if case .open(let reader) = state { return reader }
        let reader = try BodyReader(body, waker: waker())
        state = .open(reader)
        return reader
    }

    /// Goes back to its beginning.
    package mutating func rewind() {
        state = .closed
        count = 0
    }
}
