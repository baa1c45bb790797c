// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import NetworkBenchmarkSupport

func transportWorkload(_ scale: Scale) -> [Figure] {
    ProcessLimits.raiseFileLimit()
    guard Preparation.run(), let server = LocalNginx(largeSize: scale.isSmoke ? 16 << 20 : 1 << 30) else {
        print("SKIPPED: there is no nginx, no curl or no C compiler, and they cannot be installed (see above).")
        return []
    }
    defer { server.stop() }
    return smallRequests(server, scale) + largeTransfers(server, scale) + heldRequests(scale)
}
