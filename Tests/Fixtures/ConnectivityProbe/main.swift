// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

// Changes the network that it runs in, which must be a namespace of its own, and looks whether the monitor sees it.
// Prints what went wrong, and "end": ConnectivityProbe changes|flapping [ROUNDS [BUFFER SIZE]]

#if os(Linux)
    let arguments = CommandLine.arguments
    _ = Namespace()
    switch arguments.dropFirst().first {
    case "changes": Changes().run()
    case "flapping":
        let numbers = arguments.dropFirst(2).compactMap { Int32($0) }
        Flapping().run(rounds: Int(numbers.first ?? 10), bufferSize: numbers.dropFirst().first)
    default: print("usage: ConnectivityProbe changes|flapping [ROUNDS [BUFFER SIZE]]")
    }
    print("end")
#endif
