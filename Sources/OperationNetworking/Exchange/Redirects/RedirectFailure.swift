// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why a redirect is not followed though the policy would.
package enum RedirectFailure: Error, Hashable, Sendable {
    case tooMany(limit: Int)
    case loop
    case ambiguous
    case badAddress(WebAddress.Flaw)
    case downgrade
    case bodyCannotBeSentAgain

    package var code: NetworkError.Code {
        switch self {
        case .tooMany: .tooManyRedirects
        case .loop: .redirectLoop
        case .ambiguous, .badAddress: .invalidRedirect
        case .downgrade: .insecureRedirect
        case .bodyCannotBeSentAgain: .bodyNotRepeatable
        }
    }

    package var message: String {
        switch self {
        case .tooMany(let limit):
            "The server redirected more than \(limit) times. Raise maximumCount of the redirect policy if that is right."
        case .loop:
            "The server redirected to a request that was made before. Ask for another address, or tell its owner."
        case .ambiguous: "The server redirected to several addresses at once. Tell its owner."
        case .badAddress(.scheme(let scheme)):
            "The server redirected to an address of the scheme “\(scheme.quoted(limit: 40))”. Only http and https are followed."
        case .badAddress: "The server redirected to something that is no address. Tell its owner."
        case .downgrade:
            "The server redirected from https to http, where anybody can listen. Set allowsDowngrade of the redirect "
                + "policy if that is right."
        case .bodyCannotBeSentAgain:
            "The server redirected and wants the body again, which can be sent once only. Make one that can be sent "
                + "again, or ask the new address."
        }
    }
}
