// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Children that are made as there is room for them.
extension GroupMachine {
    /// What a source answered.
    package enum Pull: Sendable {
        case child
        /// Nothing now; it is asked again when a child has ended, or when the source has news.
        case nothingNow
        case nothingMore
    }

    /// Whether the source is to be asked, by the one who called this and who then says `endPull`.
    ///
    /// What it made counts until its end, also while that waits for what it depends on, or is being recovered.
    package mutating func beginPull() -> Bool {
        guard source == .open, phase == .running, !isSuspended, waiting < 64, active + waiting < width, made < width
        else { return false }
        source = .pulling
        return asking.request()
    }

    /// The source answered; what it gave was added.
    ///
    /// Where a child ended while it was asked, "nothing now" may be out of date: then it is asked again.
    package mutating func endPull(_ pull: Pull) {
        guard source == .pulling else { return }
        let hasNews = asking.stop()
        switch pull {
        case _ where phase != .running: source = .exhausted
        case .child: source = .open
        case .nothingNow: source = hasNews ? .open : .dry
        case .nothingMore: source = .exhausted
        }
    }

    /// The source may have something for a group that it had nothing for: a child ended, or an element was read.
    package mutating func sourceHasNews() {
        if source == .dry { source = .open }
        if source == .pulling { _ = asking.request() }
    }

    /// The sequence of elements failed, which counts like a child that failed.
    ///
    /// The source still has to say that it has nothing more.
    ///
    /// - Returns: Whether the failure counts. It does not if the group was decided before.
    package mutating func sourceFailed() -> Bool {
        guard phase == .running else { return false }
        failures += 1
        if let verdict = verdictAtEnd(.failure) { doom(verdict) }
        return true
    }
}
