// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct BodyIntakeTests {
        /// The bytes that were delivered, and the number of further deliveries that are allowed.
        private final class Audience {
            var told: [UInt8] = []
            var room = Int.max

            var listener: BodyIntake.Listener {
                .init(
                    mayReport: { self.room > 0 },
                    report: {
                        self.told += $0
                        self.room -= 1
                    })
            }
        }

        private let text = TestPattern.bytes(count: 200_000)

        private func intake(_ expansion: Int = 1_000) throws -> BodyIntake {
            let decoder: ContentDecoder = try #require(ContentDecoder(coding: "gzip"))
            return BodyIntake(decoder, maximumExpansion: expansion)
        }

        @Test func `bytes kept back by a hold are delivered on release, before the end`() throws {
            let audience = Audience()
            var intake = try intake()
            audience.room = 1
            try Gzip.stored(text).withUnsafeBytes { try intake.take($0, audience.listener) }
            #expect(intake.hasRest && audience.told.count < text.count)
            let isEarly = try !intake.mayEnd()
            #expect(isEarly && intake.isEndAwaited)
            for _ in 0..<3 {
                audience.room = 1
                try intake.resume(audience.listener)
                #expect(intake.hasRest)
            }
            audience.room = .max
            try intake.resume(audience.listener)
            let isSame = audience.told == text
            #expect(isSame && !intake.hasRest)
            let mayEnd = try intake.mayEnd()
            #expect(mayEnd && !intake.isEndAwaited)
        }

        @Test func `a compressed body decodes to the same bytes in parts of any size`() throws {
            let packed = Gzip.stored(text)
            for size in [1, 7, 4_096, 100_000] {
                let audience = Audience()
                var intake = try intake()
                for start in stride(from: 0, to: packed.count, by: size) {
                    let portion = Array(packed[start..<min(start + size, packed.count)])
                    try portion.withUnsafeBytes { try intake.take($0, audience.listener) }
                }
                let isWhole = try intake.mayEnd() && audience.told == text
                #expect(isWhole, "\(size)")
            }
        }

        @Test func `a truncated or damaged compressed body is rejected`() throws {
            let packed = Gzip.stored(text)
            let audience = Audience()
            var short = try intake()
            try Array(packed.dropLast()).withUnsafeBytes { try short.take($0, audience.listener) }
            #expect(throws: BodyIntake.Refusal.self) { _ = try short.mayEnd() }
            var damaged = packed
            damaged[1] ^= 0xFF
            var wrong = try intake()
            #expect(throws: BodyIntake.Refusal.self) {
                try damaged.withUnsafeBytes { try wrong.take($0, audience.listener) }
            }
        }
    }
#endif
