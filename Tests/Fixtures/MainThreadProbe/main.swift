// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// A program without a main loop, like a service on Linux. Runs the given scenario, prints OK and ends.

let scenarios: [String: @MainActor () throws -> Void] = [
    "callbacks": Scenarios.mainIsTheCallbackQueue,
    "on-main": Scenarios.mainQueueOperationOnMain,
    "main-waits-first": Scenarios.mainWaitsBeforeTheStart,
    "main-waits-second": Scenarios.mainWaitsAfterTheStart,
    "nested": Scenarios.bodyWaitsForMain,
    "inside": Scenarios.mainWaitsInsideItsOwnClosure,
    "many": Scenarios.manyFromSeveralThreads,
    "dependency": Scenarios.dependencyOnMain,
    "cancelled": Scenarios.cancelledWhileMainIsBusy,
    "dispatch-main": Scenarios.dispatchMainServesHandlers,
]

let name = CommandLine.arguments.dropFirst().first ?? ""
guard let play = scenarios[name] else {
    print("Unknown scenario '\(name)': \(scenarios.keys.sorted().joined(separator: ", "))")
    exit(2)
}
try play()
finish()
