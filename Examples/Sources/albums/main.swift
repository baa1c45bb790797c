// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// Fetches all music and videos of a user in one operation: swift run --package-path Examples albums
//
// MediaService.swift contains the code that an app needs. The other files contain a server in this process, and checks.

import Foundation
import OperationNetworking
import OperationTestKit

let service = try MediaServer()
let server = service.server
var base = NetworkBase(server.url("/"))
base.callbackQueue = DispatchQueue(label: "albums")
let media = MediaService(base: base)

print("== Everything")
let everything = try await media.everything(of: "ada").run()
for title in everything.songs.prefix(2).map(\.title) + everything.videos.prefix(2).map(\.title) { print("  \(title)") }
print("  \(everything.songs.count) songs, \(everything.videos.count) videos, \(server.counts.heads) requests")
expect(everything.songs.count == 36 && everything.videos.count == 20)
expect(everything.songs.map(\.title) == everything.songs.map(\.title).sorted(by: inNumbers))
expect(server.counts.heads == MediaServer.requestCount)

print("== All requests, canceled halfway")
let told = EventRecorder<String>()
let before = server.counts.heads
let outer = media.everything(of: "ada")
outer.callbackQueue = DispatchQueue(label: "told")
outer.successHandler = { _ in told.record("success") }
outer.failureHandler = { told.record("failure \($0)") }
outer.cancellationHandler = { told.record("canceled: \($0)") }
outer.start()
_ = await server.heads(atLeast: before + 8)
outer.cancel(because: .requested("the page was closed"))
await outer.ended()
// When no response is in progress, the server has received all requests that were sent before.
await server.counts { $0.openConnections == $0.idleConnections }
let sent = server.counts.heads - before
outer.callbackQueue.sync {}
print("  \(told.events)")
print("  \(sent) of \(MediaServer.requestCount) requests were sent, \(server.counts.abandoned) connections closed")
expect(told.events == ["canceled: [requested] the page was closed"])
expect(sent < MediaServer.requestCount && server.counts.abandoned > 0)
// No other request is in progress, so the server receives only this request.
let _: MediaService.Person = try await base.get("people/ada").run()
expect(server.counts.heads == before + sent + 1)
print("All steps succeeded.")

func inNumbers(_ one: String, _ other: String) -> Bool { one.compare(other, options: .numeric) == .orderedAscending }

func expect(_ isSo: Bool, file: String = #fileID, line: Int = #line) {
    if isSo { return }
    print("A step failed: \(file), line \(line)")
    exit(EXIT_FAILURE)
}
