// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An option of the command line.
struct Option: Sendable, Hashable {
    /// The value that an option takes.
    enum Value: Sendable, Hashable {
        case none
        case required(String)
        /// An optional value, only in the form `--name=value`.
        case optional(String)
    }

    let name: String
    let letter: Character?
    let value: Value
    let help: String

    init(_ name: String, _ letter: Character? = nil, _ value: Value = .none, _ help: String) {
        (self.name, self.letter, self.value, self.help) = (name, letter, value, help)
    }
}

extension Option {
    static let input = Option(
        "input-file", "i", .required("FILE"), "read URLs from FILE, one per line; - is standard input")
    static let jobs = Option("jobs", "j", .required("N"), "the number of files to download at a time (5)")
    static let segments = Option(
        "segments", "s", .required("N"),
        "the number of segments to download at a time, each of at least 1 MiB (1)")
    static let directory = Option(
        "directory", "d", .required("DIR"),
        "the directory for the files (the current directory)")
    static let output = Option("output", "o", .required("FILE"), "the name of the file, for a single URL")
    static let remoteName = Option(
        "remote-name", "O",
        "name files by their URLs, and ignore the names that the server sends")
    static let noClobber = Option("no-clobber", "n", "skip files that already exist, and count them as done")
    static let goOn = Option("continue", "c", "the same as --no-clobber, to run a list again")
    static let overwrite = Option("overwrite", "f", "replace files that already exist")
    static let fresh = Option("fresh", "discard the bytes of earlier runs, and start from the beginning")
    static let checksum = Option(
        "checksum", nil, .required("KIND=HEX"), "the expected checksum: sha256, sha1, md5 or crc32, for a single URL")
    static let retries = Option(
        "retries", "r", .required("N"), "the number of retries without progress for each file (5)")
    static let limitRate = Option(
        "limit-rate", nil, .required("RATE"), "the maximum number of bytes per second in total, such as 500k or 2M")
    static let perHost = Option(
        "per-host", nil, .required("N"),
        "the maximum number of requests to one host at a time (6)")
    static let timeout = Option(
        "timeout", nil, .required("SECONDS"),
        "the maximum time without data from the server (60)")
    static let connectTimeout = Option(
        "connect-timeout", nil, .required("SECONDS"), "the maximum time to connect (10)")
    static let header = Option("header", "H", .required("'NAME: VALUE'"), "send this header; can be repeated")
    static let userAgent = Option("user-agent", "A", .required("TEXT"), "the value of the User-Agent header")
    static let waitForNetwork = Option("wait-for-network", "wait if the network is unavailable, at most 5 minutes")
    static let sync = Option("sync", "store each file on the disk before it counts as done, to survive a power failure")
    static let json = Option(
        "json", nil, .optional("FILE"), "write events as lines of JSON to FILE or standard output")
    static let quiet = Option("quiet", "q", "print only failures")
    static let help = Option("help", "h", "show this help")
    static let version = Option("version", "V", "show the version")

    /// All options, in the order of the help.
    static let all: [Option] = [
        input, jobs, segments, directory, output, remoteName, goOn, noClobber, overwrite, fresh, checksum, retries,
        limitRate, perHost, timeout, connectTimeout, header, userAgent, waitForNetwork, sync, json, quiet, help,
        version,
    ]

    private init(_ name: String, _ letter: Character, _ help: String) { self.init(name, letter, .none, help) }
    private init(_ name: String, _ help: String) { self.init(name, nil, .none, help) }
}
