// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    // Tasks: what is wanted of them, and their ends.
    extension CurlLoop {
        /// Somebody wants something of the task.
        func visit(_ task: CurlTask) {
            let wishes = task.takeWishes()
            if !task.confined.machine.isEnded, wishes.isStarted { remember(task) }
            fulfil(wishes, task)
            guard !task.confined.machine.isEnded else { return }
            if !wishes.isBraked { task.deliverPending() }
            guard let transfer = task.confined.transfer else { return }
            transfer.releaseStalls(bodyIsReady: wishes.isBodyReady)
            if transfer.problem != nil {
                endFailed(transfer, task)
            } else if transfer.hasWaitedForDecoder {
                end(transfer, code: 0)
            }
        }

        /// Brings the task to what is wanted of it.
        func fulfil(_ wishes: TaskWishes, _ task: CurlTask) {
            let phase = task.phase
            switch task.confined.machine.wish(wishes) {
            case .none: break
            case .enterLine:
                task.confined.place = slots.enter(
                    task, host: task.request.origin.name, isNumeric: task.request.origin.isNumeric)
            case .leaveLine: leaveLine(task)
            case .abandon: release(task)
            case .brake(let brakes):
                if !brakes.contains(.receiving) { task.deliverPending() }
                // What was told may have set a brake again: then there is another visit.
                task.confined.transfer?.apply(brakes)
            case .tellRest:
                task.deliverPending()
                if task.confined.machine.restTold(isHeldBack: task.isHeldBack) { finish(task, nil) }
            case .cancel(let holding):
                if holding == .place { leaveLine(task) }
                if holding == .transfer { release(task) }
                finish(task, NetworkError(code: .cancelled, phase: phase, message: "The request was cancelled."))
            }
        }

        private func leaveLine(_ task: CurlTask) {
            if let place = task.confined.place { _ = slots.leave(place) }
            task.confined.place = nil
        }

        /// Ends a task wherever it is.
        func end(_ task: CurlTask, because reason: NetworkError) {
            let phase = task.phase
            leaveLine(task)
            release(task)
            fail(task, NetworkError(code: reason.code, phase: phase, message: reason.message))
        }

        /// Ends a task that has no transfer any more with an error, whatever is held back.
        func fail(_ task: CurlTask, _ error: NetworkError?) {
            _ = task.confined.machine.transferEnded(withFailure: true, isHeldBack: false)
            finish(task, error)
        }

        /// Tells the end and forgets the task.
        func finish(_ task: CurlTask, _ error: NetworkError?) {
            tasks.remove(task)
            task.tellEnd(error)
        }
    }
#endif
