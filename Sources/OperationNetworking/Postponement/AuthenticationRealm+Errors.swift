// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

// What is said of waits and failures.
extension AuthenticationRealm {
    var reason: WaitReason {
        WaitReason(.credential, "waiting for a credential" + (name.isEmpty ? "" : " (\(name))"))
    }

    func error(_ failure: Machine.Failure) -> NetworkError {
        let place = name.isEmpty ? "" : " of \(name)"
        let (code, message): (NetworkError.Code, String) =
            switch failure.kind {
            case .failed: (.refreshFailed, "No new credential\(place) could be had. Let the user sign in again.")
            case .timedOut:
                (.refreshTimedOut, "Fetching a new credential\(place) took too long. Try again, or allow more time.")
            case .signedOut: (.signedOut, "There is no credential\(place) after signing out. Sign in first.")
            case .tooMany:
                (
                    .tooManyRefreshes,
                    "The credential\(place) was renewed \(options.maximumRefreshes) times in \(options.refreshWindow) and "
                        + "is rejected again. Look whether the server accepts what is fetched."
                )
            }
        var error = NetworkError(code: code, phase: .waiting, message: message)
        error.cause = failure.error
        return error
    }

    /// What is wrong with the places of the options.
    var errorOfOrigin: NetworkError? {
        guard let badOrigin else { return nil }
        // Nothing that may be a secret is in the text of an error.
        let text = badOrigin.absoluteString.prefix { $0 != "?" }
        return NetworkError(
            code: .invalidURL, phase: .checking,
            message:
                "The realm\(name.isEmpty ? "" : " \(name)") has an origin to which nothing can be sent"
                + (text.contains("@") ? "" : " (\(text))") + ". Name scheme and host, as in https://example.com.")
    }

    /// The error of an operation whose second credential was rejected as well.
    func rejection(_ error: NetworkError) -> NetworkError {
        var rejection = NetworkError(
            code: .credentialRejected, phase: error.phase,
            message:
                "The server rejected the credential\(name.isEmpty ? "" : " of \(name)"), and the new one as well. Look "
                + "whether this user may do that, and whether the credential is put where the server looks for it.",
            request: error.request)
        rejection.status = error.status
        rejection.bodyPrefix = error.bodyPrefix
        rejection.cause = error
        return rejection
    }
}

extension NetworkError {
    /// What a refresh failed with that found no network, or no server; nil if the error is about something else.
    var codeOfRefresh: Code? {
        switch code {
        case .refreshFailed: cause.flatMap(AuthenticationOptions.networkError)?.code
        case .refreshTimedOut: .timedOut
        default: nil
        }
    }
}
