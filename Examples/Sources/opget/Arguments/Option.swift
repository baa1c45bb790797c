// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// An option of the command line.
struct Option: Sendable, Hashable {
    /// Whether it takes a value.
    enum Value: Sendable, Hashable {
        case none
        case required(String)
        /// Only in the form `--name=value`.
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
        "input-file", "i", .required("FILE"), "read URLs from FILE, one a line; - is the standard input")
    static let jobs = Option("jobs", "j", .required("N"), "how many files at a time (5)")
    static let segments = Option(
        "segments", "s", .required("N"), "how many pieces of a file at a time, of 1 MiB or more, if the server can (1)")
    static let directory = Option("directory", "d", .required("DIR"), "where files go (the current directory)")
    static let output = Option("output", "o", .required("FILE"), "the file's name, for a single URL")
    static let remoteName = Option("remote-name", "O", "name files by their URLs, whatever the server calls them")
    static let noClobber = Option("no-clobber", "n", "leave files that are there already, and count them as done")
    static let goOn = Option("continue", "c", "the same as --no-clobber, for running a list again")
    static let overwrite = Option("overwrite", "f", "replace files that are there already")
    static let fresh = Option("fresh", "throw away what earlier runs received, and begin anew")
    static let checksum = Option(
        "checksum", nil, .required("KIND=HEX"), "what the file must be: sha256, sha1, md5 or crc32, for a single URL")
    static let retries = Option(
        "retries", "r", .required("N"), "how often a file is tried again without getting on (5)")
    static let limitRate = Option(
        "limit-rate", nil, .required("RATE"), "how many bytes a second in all, such as 500k or 2M")
    static let perHost = Option("per-host", nil, .required("N"), "how many requests to one host at a time (6)")
    static let timeout = Option("timeout", nil, .required("SECONDS"), "the longest silence of a server (60)")
    static let connectTimeout = Option(
        "connect-timeout", nil, .required("SECONDS"), "how long a connection may take (10)")
    static let header = Option("header", "H", .required("'NAME: VALUE'"), "send this field; may be repeated")
    static let userAgent = Option("user-agent", "A", .required("TEXT"), "what opget calls itself")
    static let waitForNetwork = Option("wait-for-network", "wait where the network is gone, at most 5 minutes")
    static let sync = Option("sync", "bring each file to the disk before it counts as done, to survive a power cut")
    static let json = Option(
        "json", nil, .optional("FILE"), "write what happens as lines of JSON, to FILE or the standard output")
    static let quiet = Option("quiet", "q", "say nothing but failures")
    static let help = Option("help", "h", "show this help")
    static let version = Option("version", "V", "show the version")

    /// All of them, as the help lists them.
    static let all: [Option] = [
        input, jobs, segments, directory, output, remoteName, goOn, noClobber, overwrite, fresh, checksum, retries,
        limitRate, perHost, timeout, connectTimeout, header, userAgent, waitForNetwork, sync, json, quiet, help,
        version,
    ]

    private init(_ name: String, _ letter: Character, _ help: String) { self.init(name, letter, .none, help) }
    private init(_ name: String, _ help: String) { self.init(name, nil, .none, help) }
}
