// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// What was asked for on the command line.
struct Settings: Sendable {
    /// What becomes of a file that is there already.
    enum Existing: Sendable, Equatable {
        case fail, skip, replace
    }

    static let version = "1.0"

    var urls: [String] = []
    var lists: [String] = []
    var jobs = 5
    var segments = 1
    var directory = "."
    var output: String?
    var usesRemoteName = false
    var existing = Existing.fail
    var beginsAnew = false
    var checksum: FileChecksum?
    var retries = 5
    /// Bytes a second.
    var limitRate: Int?
    var perHost = 6
    var timeout = Duration.seconds(60)
    var connectTimeout = Duration.seconds(10)
    var headers: [HeaderLine] = []
    var userAgent = "opget/\(Settings.version) (OperationKit)"
    var waitsForNetwork = false
    var isDurable = false
    var json: JSONPlace?
    var isQuiet = false

    struct HeaderLine: Sendable, Equatable {
        let name: String
        let value: String
    }

    enum JSONPlace: Sendable, Equatable {
        case standardOutput
        case file(String)
    }
}

/// What the program is to do.
enum Command: Sendable {
    case help, version
    case download(Settings)
    /// Nothing, for the command line is wrong: all that is wrong with it.
    case refuse([String])

    init(_ arguments: some Sequence<String>) {
        let words = CommandLineWords(arguments)
        if words.given.contains(where: { $0.option == .help }) {
            self = .help
        } else if words.given.contains(where: { $0.option == .version }) {
            self = .version
        } else {
            var reader = SettingsReader(words)
            reader.read()
            self = reader.problems.isEmpty ? .download(reader.settings) : .refuse(reader.problems)
        }
    }
}
