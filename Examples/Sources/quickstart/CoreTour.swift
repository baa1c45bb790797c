// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// What operations do by themselves.
struct CoreTour {
    func run() async throws {
        let queue = OperationQueue()

        print("Results fed along a graph, in a plain OperationQueue")
        let first = CountWords(of: "one two three")
        let second = CountWords(of: "four five")
        let sum = Sum()
        try sum.receive(from: first, second) { sum, first, second in
            sum.numbers = [first, second]
        }
        for operation in [sum, first, second] { queue.addOperation(operation) }
        print("  \(try await sum.value) words in all; the operation is \(sum.stateDescription)")
        expect(sum.outcome?.result == 5)

        print("A dependency that fails")
        let empty = CountWords(of: "")
        empty.name = "count nothing"
        let strict = Sum()
        let tolerant = Sum()
        try strict.receive(from: empty, otherwise: .cancel) { $0.numbers = [$1] }
        try tolerant.receive(from: empty, otherwise: .use(0)) { $0.numbers = [$1] }
        for operation in [strict, tolerant, empty] { queue.addOperation(operation) }
        print("  strict: \(await strict.finalOutcome.cancellationCause?.message ?? "")")
        print("  tolerant: \(try await tolerant.value)")
        expect(strict.cancellationCause?.code == .dependencyFailed)

        print("A file, its checksum, and its removal")
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("quickstart-\(UUID()).txt")
        let write = FileWriteOperation(Data("hello\n".utf8), to: file)
        let checksum = FileChecksumOperation(file)
        let remove = FileRemoveOperation(file)
        try checksum.depend(on: write, otherwise: .cancel)
        remove.addDependency(checksum)
        for operation in [remove, checksum, write] { queue.addOperation(operation) }
        print("  sha256 \(try await checksum.value.hexadecimal.prefix(16))…; removed: \(try await remove.value)")
        expect(checksum.outcome?.result?.hexadecimal.hasPrefix("5891b5b522d5df08") == true)

        print("A timeout")
        let call = SilentCall()
        call.timeout = .milliseconds(50)
        call.start()
        print("  \(await call.finalOutcome)")
        expect(call.cancellationCause?.code == .timedOut)

        print("A cancellation with a reason")
        let nap = TaskOperation { try await Task.sleep(for: .seconds(3600)) }
        nap.start()
        nap.cancel(because: .requested("The window was closed."))
        print("  \(nap.stateDescription): \(nap.cancellationCause?.message ?? "")")
        expect(nap.isCancelled)

        print("A handler")
        let words = CountWords(of: "a handler on a queue")
        words.callbackQueue = DispatchQueue(label: "handlers")
        words.successHandler = { print("  told \($0)") }
        words.start()
        words.callbackQueue.sync {}
    }
}
