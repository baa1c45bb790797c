// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How many entries are in each stage.
struct StageCounts {
    var entering = 0
    var waiting = 0
    var held = 0
    var ready = 0
    var dealt = 0
    var running = 0
    var ending = 0
    /// Those of `ready` that no barrier holds back.
    var readyInFront = 0

    subscript(stage: QueueMachine.Stage) -> Int {
        get {
            switch stage {
            case .free: 0
            case .entering: entering
            case .waiting: waiting
            case .held: held
            case .ready: ready
            case .dealt: dealt
            case .running: running
            case .ending: ending
            }
        }
        set {
            switch stage {
            case .free: break
            case .entering: entering = newValue
            case .waiting: waiting = newValue
            case .held: held = newValue
            case .ready: ready = newValue
            case .dealt: dealt = newValue
            case .running: running = newValue
            case .ending: ending = newValue
            }
        }
    }
}
