// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

extension EndpointOperation {
    /// Starts it, and waits for what becomes of it.
    var begunOutcome: OperationOutcome<ResultType, NetworkError> {
        get async {
            start()
            return await finalOutcome
        }
    }
}
