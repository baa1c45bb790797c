// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationTestKit
import Synchronization

/// An object that creates tokens and checks whether a token is valid.
final class TokenDesk: Sendable {
    private struct State {
        var token = 0
        /// The number of requests for which the current token is still valid.
        var uses = 0
        var refreshes = 0
    }

    private let state = Mutex(State())

    /// The number of times that a token was refreshed.
    var refreshCount: Int { state.withLock { $0.refreshes } }

    /// Lets the current token expire after a number of requests.
    func expireToken(after uses: Int) { state.withLock { $0.uses = uses } }

    /// Returns new tokens for a valid name and password.
    func signIn(_ request: LoopbackRequest) -> LoopbackAnswer {
        request.text.contains("open sesame") ? newTokens() : .json(#"{"error":"wrong password"}"#, status: 403)
    }

    /// Returns new tokens for a refresh token.
    func refresh() -> LoopbackAnswer {
        state.withLock { $0.refreshes += 1 }
        return newTokens().after(.milliseconds(200))
    }

    /// Uses a token for one request, and returns false if the token is not valid.
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
