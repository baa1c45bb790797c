// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The exit status of the program, which a script can evaluate.
///
/// If several files fail, the exit status is that of the first failed file in the order of the URLs.
enum ExitStatus: Int32, CaseIterable, Sendable {
    case success = 0
    /// An unexpected error occurred.
    case failure = 1
    /// An option, a URL or a line of the list is invalid, and opget has started no download.
    case usage = 2
    /// The connection failed, or no data arrived in time.
    case network = 3
    /// The server responded without the requested file.
    case server = 4
    /// The file does not have the expected checksum.
    case checksum = 5
    /// The disk is full, or the file already exists or cannot be written.
    case disk = 6
    /// The terminal was closed (SIGHUP), and opget can resume the download later.
    case hungUp = 129
    /// The user pressed Ctrl-C (SIGINT), and opget can resume the download later.
    case interrupted = 130
    /// The program was terminated (SIGTERM), and opget can resume the download later.
    case terminated = 143

    /// Creates the exit status for a signal, which is 128 plus the number of the signal.
    init(signal: Int32) { self = ExitStatus(rawValue: 128 + signal) ?? .failure }

    /// The signal that ends the program, or nil if no signal ends the program.
    var signal: Int32? { rawValue > 128 ? rawValue - 128 : nil }

    /// A description of the exit status for the help.
    var meaning: String {
        switch self {
        case .success: "all files are complete"
        case .failure: "an unexpected failure"
        case .usage: "an option, a URL or a line of a list is wrong; no download was started"
        case .network: "the connection failed, or a time limit was reached"
        case .server: "the server responded with an error, or with an invalid response"
        case .checksum: "a checksum does not match"
        case .disk: "the disk is full, or a file already exists or cannot be written"
        case .hungUp: "the terminal was closed (SIGHUP); run the command again to resume"
        case .interrupted: "interrupted (SIGINT); run the command again to resume"
        case .terminated: "terminated (SIGTERM); run the command again to resume"
        }
    }
}
