// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How the program ends: what a script may go by.
///
/// Of several files that failed, the first of the list in the order in which they were given counts.
enum ExitStatus: Int32, CaseIterable, Sendable {
    case success = 0
    /// Something that should not have happened.
    case failure = 1
    /// An option, a URL or a line of the list is wrong; nothing was begun.
    case usage = 2
    /// No connection, or it broke, or nothing came in time.
    case network = 3
    /// The server answered, but with no file.
    case server = 4
    /// The file has another checksum than it should.
    case checksum = 5
    /// The disk is full, the file is there already, or cannot be written.
    case disk = 6
    /// The terminal is gone (SIGHUP); what was received can be gone on with.
    case hungUp = 129
    /// Ctrl-C (SIGINT); what was received can be gone on with.
    case interrupted = 130
    /// SIGTERM; the same.
    case terminated = 143

    /// How the program ends because of a signal: as the shell shows it, 128 and its number.
    init(signal: Int32) { self = ExitStatus(rawValue: 128 + signal) ?? .failure }

    /// The signal that ends the program; nil if none does.
    var signal: Int32? { rawValue > 128 ? rawValue - 128 : nil }

    /// What it means, for the help.
    var meaning: String {
        switch self {
        case .success: "all files are complete"
        case .failure: "an unexpected failure"
        case .usage: "an option, a URL or a line of a list is wrong; no download was started"
        case .network: "no connection, a connection that broke, or a time limit"
        case .server: "the server responded with an error, or with an invalid response"
        case .checksum: "a checksum does not match"
        case .disk: "the disk is full, or a file exists already or cannot be written"
        case .hungUp: "the terminal is gone (SIGHUP); run the command again to resume"
        case .interrupted: "interrupted (SIGINT); run the command again to resume"
        case .terminated: "terminated (SIGTERM); run the command again to resume"
        }
    }
}
