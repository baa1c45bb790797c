// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// A task of a ``CurlSession``.
    typealias CurlTask = SessionTask<CurlEngine>

    extension CurlEngine: TaskCarrier {
        typealias Transfer = CurlTransfer

        struct Extras {
            /// Where the task stands in the list of those that the loop knows; -1 if it does not.
            var index = -1
            /// How often it was sent anew because an old connection broke.
            var repetitions = 0
            /// Whether it is not to go over a connection that was made before.
            var wantsNewConnection = false
            /// Whether an earlier attempt may have reached the server.
            var wasSentBefore = false
        }
    }
#endif
