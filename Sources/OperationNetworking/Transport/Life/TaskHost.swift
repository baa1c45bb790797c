// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The thread of a session, as the machines of its tasks see it: what they ask for is done here, the same way for every
/// session.
package protocol TaskHost: AnyObject {
    associatedtype Carrier: TaskCarrier

    /// The lines in which tasks wait for their turns.
    var slots: SlotTable<SessionTask<Carrier>> { get set }
    /// In which line a request waits, and whether no name must be looked up for it, as far as slots are to heed that.
    func line(of request: NetworkRequest) -> (name: String, isNumeric: Bool)

    /// How far the task has come.
    func phase(of task: SessionTask<Carrier>) -> NetworkError.Phase
    /// Takes the transfer away from the task, if it has one, and gives it up.
    func abandon(_ task: SessionTask<Carrier>)
    /// Brings the transfer of the task to what is to be held back.
    func apply(_ brakes: TaskMachine.Brakes, to task: SessionTask<Carrier>)
    /// The task has told its end, and need not be known any more.
    func forget(_ task: SessionTask<Carrier>)
}

extension TaskHost {
    /// Brings the task to what is wanted of it.
    package func fulfil(_ wishes: TaskWishes, _ task: SessionTask<Carrier>) {
        let phase = phase(of: task)
        switch task.confined.machine.wish(wishes) {
        case .none: break
        case .enterLine:
            let line = line(of: task.request)
            task.confined.place = slots.enter(
                task, host: line.name, isNumeric: line.isNumeric, priority: task.request.options.priority,
                isAhead: task.request.options.isAhead)
        case .leaveLine: leaveLine(task)
        case .abandon: abandon(task)
        case .brake(let brakes): apply(brakes, to: task)
        case .tellRest:
            task.deliverPending()
            if task.confined.machine.restTold(isHeldBack: task.isHeldBack) { finish(task, nil) }
        case .cancel(let holding):
            if holding == .place { leaveLine(task) }
            if holding == .transfer { abandon(task) }
            finish(task, NetworkError(code: .cancelled, phase: phase, message: "The request was cancelled."))
        }
    }

    /// Gives a task the slot that it waited for; false if it does not want it now, be it for a word that has not come by yet,
    /// or because its receiver takes it back.
    package func takesSlot(_ task: SessionTask<Carrier>) -> Bool {
        task.confined.place = nil
        var wishes = task.presentWishes
        if !wishes.isSuspended, !wishes.isCancelled {
            if task.mayLeave { return task.confined.machine.granted() }
            task.cancel()
            wishes = task.presentWishes
        }
        // Its place is gone, and so it must be heeded what was found: by now it may be resumed again, and would then wait for
        // ever. The word of that comes by later.
        fulfil(wishes, task)
        return false
    }

    package func leaveLine(_ task: SessionTask<Carrier>) {
        if let place = task.confined.place { _ = slots.leave(place) }
        task.confined.place = nil
    }

    /// Tells the end and forgets the task.
    package func finish(_ task: SessionTask<Carrier>, _ error: NetworkError?) {
        task.tellEnd(error)
        forget(task)
    }
}
