// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension Duration {
    /// The time for a log: in seconds, to the millisecond.
    var inSeconds: String {
        let milliseconds = (max(self, .zero).saturatedNanoseconds.magnitude + 500_000) / 1_000_000
        let decimals = String(milliseconds % 1_000 + 1_000).dropFirst()
        return "\(milliseconds / 1_000).\(decimals) s"
    }
}
