// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Counters
import Foundation
import OperationNetworking

guard let url = URL(string: CommandLine.arguments[1]) else { fatalError("The argument is not a URL.") }
let operation = NetworkDataOperation<Data>(url: url)
operation.successHandler = { _ in Measurement.finish() }
operation.failureHandler = { error in fatalError(error.message) }
Measurement.start()
operation.start()
dispatchMain()
