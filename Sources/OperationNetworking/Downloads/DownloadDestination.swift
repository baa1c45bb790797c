// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Where a download is to lie when it is complete.
public struct DownloadDestination: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        case temporary(in: URL?)
        case file(URL)
        case folder(URL)
    }

    package let place: Place

    /// In a temporary file, which is handed over, and removed if nobody moved it away.
    public static let temporary = DownloadDestination(place: .temporary(in: nil))

    /// In a temporary file in that directory.
    package static func temporary(in folder: URL) -> DownloadDestination {
        DownloadDestination(place: .temporary(in: folder))
    }

    var isTemporary: Bool {
        if case .temporary = place { true } else { false }
    }

    var isFolder: Bool {
        if case .folder = place { true } else { false }
    }

    /// At this place.
    public static func file(_ url: URL) -> DownloadDestination {
        DownloadDestination(place: .file(url))
    }

    /// In this directory, under the name that the server gives, or else the last part of the URL.
    ///
    /// Whatever the server says, it is one plain name in this directory: ``DownloadFileName`` says how it is cleaned.
    public static func folder(_ url: URL) -> DownloadDestination {
        DownloadDestination(place: .folder(url))
    }
}
