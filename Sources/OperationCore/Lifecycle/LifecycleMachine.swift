// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The life of one operation as a pure value: each event moves it and says what the shell must do now.
///
/// It knows nothing of types, threads or time. The shell applies an event under the operation's lock and performs the
/// returned action after it; whatever order threads come in, the outcome is decided once, by the event that came first.
///
/// ```text
///           start                              finish, cancel                 told
/// pending ─────────▶ executing ⇄ suspended ────────────────▶ finishing ────────────▶ finished
///    │ finish            │ finish (body must return)  concluding ──▲ body returned
///    ├────▶ kept ────────│──────────────────────────── start ──────▲
///    │ a dependency's rule
///    ├────▶ failedByRule │──────────────────────────── start ──────▲
///    │ cancel            │ cancel (body must end)     windingDown ─▲ body ended
///    └────▶ cancelledEarly ─────────────────────────── start ──────▲
/// ```
package struct LifecycleMachine: Sendable, Equatable {
    /// How an outcome came about.
    package enum Ending: UInt8, Sendable { case success, failure, cancelled }

    /// When an operation whose outcome is decided counts as ended.
    package enum Style: UInt8, Sendable {
        /// There and then, whatever its body still does.
        case atOnce
        /// When the body says so after a cancellation; a result or an error ends it at once.
        case afterWindDown
        /// When the body returned, always.
        case whenBodyReturns
    }

    /// What a start that was asked for waits for.
    enum Wait: UInt8 {
        case start
        case dependencies
        /// That a condition, a moment or a resource lets it begin.
        case admission
        /// The dependencies ended on a thread of their own, and a queue will begin this one.
        case turn
        case delay
    }

    /// Whether the body of an operation that began was entered, or is certain not to have been.
    enum Body: UInt8 {
        /// The start is being performed: inputs are handed over, and the timeout is set.
        case toCome
        /// It runs, did, or is just about to.
        case entered
    }

    /// What a cancelled operation has still to wait for before it ends.
    enum Remainder: Equatable {
        case start
        /// The start that is being performed, after which the body is not entered.
        case entry(Style)
        case body(Style)
        case nothing
    }

    enum Phase: Equatable {
        /// Undecided, and the body has not begun.
        case pending(Wait)
        /// A result or error came before the start: decided, to be told when it is started.
        case kept(Ending, Wait)
        /// The rule of a dependency gave an error before the start: decided, to be told when it is started, without
        /// waiting for the other dependencies.
        case failedByRule
        /// Cancelled, and somebody is telling so: it cannot end before that is done.
        case tellingCancellation(until: Remainder)
        /// Cancelled before the start: decided and told, to be ended when it is started.
        case cancelledEarly
        case executing(Body)
        case suspended(Body)
        /// The body gave its result or error and has still to return.
        case concluding(Ending)
        /// Cancelled and told; the body has still to end.
        ///
        /// How it ends was settled when it was cancelled, whatever its subclass says later.
        case windingDown(Style)
        /// Decided and told; `isFinished` is about to be signalled.
        case finishing(Ending)
        case finished(Ending)
    }

    var phase: Phase = .pending(.start)

    package init() {}
}
