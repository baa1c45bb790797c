// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    // Tasks: what is wanted of them, and their ends.
    extension CurlLoop {
        /// Somebody wants something of the task.
        func visit(_ task: CurlTask) {
            let wishes = task.takeWishes()
            if !task.confined.machine.isEnded, wishes.isStarted { remember(task) }
            fulfil(wishes, task)
            guard !task.confined.machine.isEnded else { return }
            task.deliverPending()
            guard let transfer = task.confined.transfer else { return }
            // There may have been a pause, and be none any more.
            transfer.followPauses()
            transfer.releaseStalls(bodyIsReady: wishes.isBodyReady)
            if transfer.problem != nil {
                endFailed(transfer, task)
            } else if transfer.hasWaitedForDecoder {
                end(transfer, code: 0)
            }
        }

        /// Ends a task wherever it is.
        func end(_ task: CurlTask, because reason: NetworkError) {
            let phase = phase(of: task)
            leaveLine(task)
            release(task)
            fail(task, NetworkError(code: reason.code, phase: phase, message: reason.message))
        }

        /// Ends a task that has no transfer any more with an error, whatever is held back.
        func fail(_ task: CurlTask, _ error: NetworkError?) {
            _ = task.confined.machine.transferEnded(withFailure: true, isHeldBack: false)
            finish(task, error)
        }
    }

    // What the machines of tasks ask for.
    extension CurlLoop: TaskHost {
        typealias Carrier = CurlEngine

        /// By where its connection will lead.
        func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool) {
            let place = places.place(of: request.origin)
            return (place.name, place.isNumeric)
        }

        func phase(of task: CurlTask) -> NetworkError.Phase {
            task.confined.transfer?.phase ?? task.confined.machine.restingPhase
        }

        func abandon(_ task: CurlTask) { release(task) }

        func apply(_ brakes: TaskMachine.Brakes, to task: CurlTask) {
            if !brakes.contains(.receiving) { task.deliverPending() }
            // What was told may have set a brake again: then there is another visit.
            task.confined.transfer?.apply(brakes)
        }

        func forget(_ task: CurlTask) { tasks.remove(task) }
    }
#endif
