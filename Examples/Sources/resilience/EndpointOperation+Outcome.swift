// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationNetworking

extension EndpointOperation {
    /// Starts the operation and waits for its outcome.
    var begunOutcome: OperationOutcome<ResultType, NetworkError> {
        get async {
            start()
            return await finalOutcome
        }
    }
}
