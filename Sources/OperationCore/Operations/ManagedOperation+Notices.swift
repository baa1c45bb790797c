// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// What is said about requests that changed nothing.
extension ManagedOperation {
    func reportStartBesideQueue() {
        OperationDiagnostics.report(
            .startedTwice, by: self,
            "It is in an operation queue, which will start it, so this start() changed nothing. "
                + "Either start an operation by hand or give it to a queue.")
    }

    func reportSecondStart() {
        OperationDiagnostics.report(
            .startedTwice, by: self, "It was started before, so this start() changed nothing.")
    }

    func reportRefusedWait() {
        OperationDiagnostics.report(.tooManyWaits, by: self, CancellationCause.tooManyWaits.message)
    }

    func reportReleaseUnfinished() {
        OperationDiagnostics.report(
            .releasedUnfinished, by: self,
            "It was freed while it executed, without an outcome, so nobody will be told of one. Finish it on each path "
                + "of its body, and keep it until then: in a queue, or by startAndKeepAlive().")
    }

    func reportLateCancellation() {
        OperationDiagnostics.report(
            .cancelledAfterEnd, by: self, "It had its outcome already, so cancelling it changed nothing.")
    }

    func reportSecondFinish() {
        OperationDiagnostics.report(
            .finishedTwice, by: self,
            "It has a result or an error already, so finishing it again changed nothing. "
                + "Call finish(withResult:) or finish(withError:) once on each path.")
    }

    func reportFinishAfterCancellation() {
        OperationDiagnostics.report(
            .finishedAfterCancellation, by: self, "It had been cancelled, so its result or error was dropped.")
    }
}
