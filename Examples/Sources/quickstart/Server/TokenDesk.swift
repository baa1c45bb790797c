// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationTestKit
import Synchronization

/// Hands out tokens, and knows which one is good, and for how long.
final class TokenDesk: Sendable {
    private struct State {
        var token = 0
        /// How many more requests the present token is good for.
        var uses = 0
        var refreshes = 0
    }

    private let state = Mutex(State())

    /// How often a token was renewed.
    var refreshCount: Int { state.withLock { $0.refreshes } }

    /// Lets the present token be good for so many more requests.
    func expireToken(after uses: Int) { state.withLock { $0.uses = uses } }

    /// Tokens for somebody with a password.
    func signIn(_ request: LoopbackRequest) -> LoopbackAnswer {
        request.text.contains("open sesame") ? newTokens() : .json(#"{"error":"wrong password"}"#, status: 403)
    }

    /// Tokens for somebody who had others.
    func refresh() -> LoopbackAnswer {
        state.withLock { $0.refreshes += 1 }
        return newTokens().after(.milliseconds(200))
    }

    /// Uses a token for one request; false if it is not good.
    func use(_ token: String) -> Bool {
        state.withLock { state in
            guard token == "token-\(state.token)", state.uses > 0 else { return false }
            state.uses -= 1
            return true
        }
    }

    private func newTokens() -> LoopbackAnswer {
        let number = state.withLock { state in
            state.token += 1
            state.uses = .max
            return state.token
        }
        return .json(#"{"access":"token-\#(number)","refresh":"refresh-\#(number)"}"#)
    }
}
