// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking

print(NetworkRequest.self)
