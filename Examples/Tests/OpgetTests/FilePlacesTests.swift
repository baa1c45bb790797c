// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Testing

@testable import opget

@Suite("Destinations of files", .timeLimit(.minutes(1)))
struct FilePlacesTests {
    @Test func `with --continue, only a file that existed before the run is kept`() throws {
        let bench = try OpgetBench()
        _ = try bench.write("old", to: "old")
        var settings = Settings()
        settings.directory = bench.folder.path
        settings.existing = .skip
        let places = FilePlaces(settings)
        // Another URL of the run has moved its file to this place, and has not recorded it yet.
        let path = try bench.write("new", to: "new")
        let item = DownloadItem(index: 1, text: bench.url("/x"), url: bench.server.url("/x"))
        for (name, isOld) in [("old", true), ("new", false)] {
            let place = bench.folder.appending(path: name)
            #expect(places.isOld(place, for: item) == isOld)
            switch places.resultOfUnchecked(place, for: item) {
            case .skipped(let path): #expect(isOld && path == place.path)
            case .failed(let failure): #expect(!isOld && failure == .nameTwice)
            case .done, .stopped: Issue.record("\(name) is neither kept nor refused")
            }
        }
        // No other URL can have a path of a list.
        let listed = DownloadItem(index: 2, text: bench.url("/y"), url: bench.server.url("/y"), name: path)
        #expect(places.isOld(bench.folder.appending(path: "new"), for: listed))
    }

    @Test(arguments: [Settings.Existing.skip, .replace])
    func `a name in another case is the name of an old file only with --continue`(existing: Settings.Existing) throws {
        let bench = try OpgetBench()
        _ = try bench.write("old", to: "Old")
        var settings = Settings()
        settings.directory = bench.folder.path
        settings.existing = existing
        let places = FilePlaces(settings)
        // On a volume that ignores case, the file exists under this name, too.
        _ = try bench.write("old", to: "old")
        let item = DownloadItem(index: 1, text: bench.url("/x"), url: bench.server.url("/x"))
        #expect(places.isOld(bench.folder.appending(path: "Old"), for: item))
        #expect(places.isOld(bench.folder.appending(path: "old"), for: item) == (existing == .skip))
        #expect(!places.isOld(bench.folder.appending(path: "other"), for: item))
    }

    @Test(arguments: [Settings.Existing.skip, .replace])
    func `in a directory that cannot be listed, --continue keeps each file`(existing: Settings.Existing) throws {
        let bench = try OpgetBench()
        var settings = Settings()
        // Even the administrator cannot list a file.
        settings.directory = try bench.write("old", to: "old")
        settings.existing = existing
        let places = FilePlaces(settings)
        let item = DownloadItem(index: 1, text: bench.url("/x"), url: bench.server.url("/x"))
        #expect(places.isOld(bench.folder.appending(path: "old"), for: item) == (existing == .skip))
        #expect(places.hasSegments)
    }
}
