// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What the package does, from top to bottom: swift run --package-path Examples quickstart
//
// NetworkTour shows requests as operations, against a server in this process; CoreTour shows operations by themselves.

import Foundation

try await NetworkTour().run()
try await CoreTour().run()
print("All as expected.")

func expect(_ isSo: Bool, file: String = #fileID, line: Int = #line) {
    if isSo { return }
    print("Not as expected: \(file), line \(line)")
    exit(EXIT_FAILURE)
}
