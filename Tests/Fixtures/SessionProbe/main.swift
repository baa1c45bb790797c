// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

// A program that uses a session as a test of it cannot be done inside of the tests: it forks, has other programs run
// beside it, dies of SIGPIPE if it gets one, has no descriptors left, or no libcurl. Says what happened.

#if OPERATIONKIT_LIBCURL
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let url = URL(string: arguments[2]) else {
        print("usage: SessionProbe fork|spawn|pipe|descriptors|fallback <url>")
        exit(2)
    }
    if arguments[1] == "fallback" {
        try Fallback(url).run()
        exit(0)
    }
    let probe = Probe(url)
    switch arguments[1] {
    case "fork": try probe.fork()
    case "spawn": try probe.spawnUnderLoad()
    case "pipe": try probe.writeIntoBrokenPipes()
    case "descriptors": try probe.runOutOfDescriptors()
    default: exit(2)
    }
#else
    print("There is no session for this platform yet.")
    exit(2)
#endif
