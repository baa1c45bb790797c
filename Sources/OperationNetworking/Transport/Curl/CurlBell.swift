// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation

    /// Wakes the thread of a session from its wait for events.
    struct CurlBell: ~Copyable, Sendable {
        let descriptor: Int32

        init() {
            descriptor = OKBellMake()
        }

        deinit {
            if descriptor >= 0 { Foundation.close(descriptor) }
        }

        var isValid: Bool { descriptor >= 0 }

        func ring() {
            var one: UInt64 = 1
            _ = write(descriptor, &one, 8)
        }

        func silence() {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
        }
    }
#endif
