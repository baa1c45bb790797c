// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

/// Takes all notices of the process and keeps them apart by the name of the operation, so that suites may run at the
/// same time.
///
/// Notices of operations whose name nobody asked for are dropped.
enum NoticeHub {
    /// Begins to collect the notices of operations of this name, which must be the test's own.
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
        // Tests of other modules in the same process take theirs.
        let before = OperationDiagnostics.handler
        OperationDiagnostics.handler = { notice in
            recorders.withLock { $0[notice.operation] }?.record(notice)
            before?(notice)
        }
    }()
}
