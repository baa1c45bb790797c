// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

// Looks up names at its own name server, which does not reply. Run it in a namespace in which the system's resolver
// uses 127.0.0.1. Prints each error, and "end": ResolverProbe others|bounds|limits|ends

#if OPERATIONKIT_LIBCURL
    guard let names = NameServer() else {
        print("BAD there is no port for a name server")
        exit(1)
    }
    switch CommandLine.arguments.dropFirst().first {
    case "others": try Lookups(names, lookups: 3).othersGoOn()
    case "bounds": try Lookups(names, lookups: 3).areBounded(by: 3)
    case "limits": try Lookups(names, lookups: 1).endInTime()
    case "ends": try Lookups(names, lookups: 3).endAtOnce()
    default: print("usage: ResolverProbe others|bounds|limits|ends")
    }
    print("end")
    // Lookup threads may still be running.
    exit(0)
#endif
