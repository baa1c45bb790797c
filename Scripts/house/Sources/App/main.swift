// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

print(NetworkRequest.self)
