// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// Operations that succeed despite failures, with a log of the decisions, against a server in this process:
//
//     swift run --package-path Examples resilience

import Foundation

try await RetryTour().run()
try await AuthenticationTour().run()
try await OfflineTour().run()
print("All steps succeeded.")

func expect(_ isSo: Bool, file: String = #fileID, line: Int = #line) {
    if isSo { return }
    print("A step failed: \(file), line \(line)")
    exit(EXIT_FAILURE)
}
