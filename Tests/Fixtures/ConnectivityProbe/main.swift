// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

// Changes the network of the current namespace, which must be separate, and checks that the monitor reports the
// changes. Prints each error, and "end": ConnectivityProbe changes|flapping [ROUNDS [BUFFER SIZE]]|sending

#if os(Linux)
    let arguments = CommandLine.arguments
    switch arguments.dropFirst().first {
    case "changes":
        _ = Namespace()
        Changes().run()
    case "flapping":
        _ = Namespace()
        let numbers = arguments.dropFirst(2).compactMap { Int32($0) }
        Flapping().run(rounds: Int(numbers.first ?? 10), bufferSize: numbers.dropFirst().first)
    case "sending": Sending().run()
    default: print("usage: ConnectivityProbe changes|flapping [ROUNDS [BUFFER SIZE]]|sending")
    }
    print("end")
#endif
