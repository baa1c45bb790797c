// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

/// Collects all notices of the process by operation name, so that suites can run at the same time.
///
/// Drops notices of operations for which no recorder was requested.
enum NoticeHub {
    /// Starts to collect the notices of operations with this name, which must be unique to the test.
    static func recorder(for name: String) -> EventRecorder<OperationNotice> {
        install()
        return recorders.withLock { recorders in
            if let recorder = recorders[name] { return recorder }
            let recorder = EventRecorder<OperationNotice>()
            recorders[name] = recorder
            return recorder
        }
    }

    /// Keeps notices off the console.
    static func install() { _ = installed }

    private static let recorders = Locked<[String: EventRecorder<OperationNotice>]>([:])

    private static let installed: Void = {
        // Test targets in the same process share the handler.
        let before = OperationDiagnostics.handler
        OperationDiagnostics.handler = { notice in
            recorders.withLock { $0[notice.operation] }?.record(notice)
            before?(notice)
        }
    }()
}
