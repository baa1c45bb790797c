// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

// A program that downloads one file and that the test kills during the download. Its arguments are the URL, the
// destination, and a file of eight bytes in which it counts the received bytes. Prints OK or the error at the end.

#if OPERATIONKIT_LIBCURL
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let url = URL(string: arguments[1]), let counter = ByteCounter(path: arguments[3])
    else {
        print("usage: DownloadProbe <url> <destination> <counter>")
        exit(2)
    }
    var configuration = CurlSession.Configuration()
    configuration.proxy = .none
    let session = CountingSession(CurlSession(configuration: configuration), counter)
    var options = DownloadOptions()
    options.checkpointInterval = .milliseconds(20)
    let download = Download(to: .file(URL(fileURLWithPath: arguments[2])), options: options)
    /// A receiver that ends the process when a download ends without a file.
    final class FailureReceiver: NetworkReceiver {
        func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
        func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
        func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
            print(error.map { "\($0)" } ?? "The response is not the file.")
            exit(1)
        }
    }
    let task = DownloadTask(
        try NetworkRequest(url: url), over: session, with: download, FailureReceiver(),
        didSave: { file, _ in
            print("OK \(file.length)")
            exit(0)
        })
    task.resume()
    while true { sleep(60) }
#else
    print("There is no session for this platform yet.")
    exit(2)
#endif
