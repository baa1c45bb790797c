// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Testing

@testable import OperationNetworking

@Suite(.timeLimit(.minutes(3)))
final class DownloadInboxTests {
    private var inbox = DownloadInbox()
    private func take(_ inbox: inout DownloadInbox) -> DownloadInbox.Batch? { inbox.take([]) }

    private func settle(_ inbox: inout DownloadInbox) -> Bool { inbox.settle() }

    private func put(_ count: Int, _ inbox: inout DownloadInbox) -> DownloadInbox.Need {
        let holds = inbox.isFilled(by: count)
        return [UInt8](repeating: 7, count: count).withUnsafeBytes { inbox.put($0, isHeld: holds) }
    }

    private func put(_ head: ResponseHead, _ inbox: inout DownloadInbox) -> DownloadInbox.Need { inbox.put(head) }

    @Test func `a few bytes are processed at the end of the turn, and a full portion immediately`() {
        #expect(put(DownloadInbox.portion - 1, &inbox) == .soon)
        #expect(put(1, &inbox) == .now)
        #expect(put(10, &inbox) == .none)
        let batch = take(&inbox)
        #expect(batch?.bytes.count == DownloadInbox.portion + 10 && batch?.proceeds == false)
        #expect(take(&inbox) == nil)
    }

    @Test func `headers wait for the end of the turn, so that a small response is processed as a whole`() {
        let head = ResponseHead(url: URL(filePath: "/"), status: 200)
        #expect(put(head, &inbox) == .soon)
        #expect(put(10, &inbox) == .soon)
        #expect(!inbox.isBrief)
        let isWoken = inbox.put(end: nil)
        #expect(isWoken && inbox.isBrief)
        let batch = take(&inbox)
        #expect(batch?.head == head && batch?.bytes.count == 10 && batch?.end != nil)
        // Headers alone are processed, too, and a failure or a large rest may take longer.
        #expect(put(head, &inbox) == .none)
        #expect(take(&inbox)?.head == head)
        #expect(take(&inbox) == nil)
        #expect(put(head, &inbox) == .soon)
        #expect(settle(&inbox))
        #expect(put(DownloadInbox.portion + 1, &inbox) == .none)
        _ = inbox.put(end: nil)
        #expect(!inbox.isBrief)
    }

    @Test func `deferred bytes are processed once`() {
        #expect(put(10, &inbox) == .soon)
        #expect(settle(&inbox))
        #expect(!settle(&inbox))
        #expect(take(&inbox)?.bytes.count == 10)
        #expect(take(&inbox) == nil)
        // The end processed them as well.
        #expect(put(10, &inbox) == .soon)
        let isWoken = inbox.put(end: nil)
        #expect(isWoken)
        #expect(take(&inbox)?.bytes.count == 10)
        #expect(take(&inbox) == nil)
        #expect(!settle(&inbox))
    }

    @Test func `a transfer is held when the inbox is full, and resumes when the inbox is emptied`() {
        #expect(put(DownloadInbox.capacity, &inbox) == .now)
        #expect(take(&inbox)?.proceeds == true)
        #expect(take(&inbox) == nil)
    }

    @Test func `a receiver that drops bytes is not woken for them, but only to hold the transfer`() {
        inbox.dropBytes()
        #expect(put(DownloadInbox.capacity, &inbox) == .none)
        let need = [UInt8]([1]).withUnsafeBytes { inbox.put($0, isHeld: true) }
        #expect(need == .now)
    }
}
