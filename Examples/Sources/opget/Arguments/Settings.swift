// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The settings from the command line.
struct Settings: Sendable {
    /// The action for a file that already exists.
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
    /// The maximum number of bytes per second.
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

/// The action of the program.
enum Command: Sendable {
    case help, version
    case download(Settings)
    /// The program prints the errors of the command line and ends.
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
