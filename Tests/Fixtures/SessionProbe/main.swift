// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

// A program that uses a session in ways that are not possible inside the tests. The program forks, starts other
// programs, dies if it receives SIGPIPE, runs out of descriptors, or has no libcurl, and prints the results.

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
