// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

/// A task that ignores all calls that it does not implement itself.
protocol IdleTask: NetworkTask {}

extension IdleTask {
    func resume() {}
    func suspend() {}
    func cancel() {}
    func hold() {}
    func proceed() {}
}

/// A task that passes all calls that it does not implement itself to another task.
protocol WrappingTask: NetworkTask {
    var task: any NetworkTask { get }
}

extension WrappingTask {
    func resume() { task.resume() }
    func suspend() { task.suspend() }
    func cancel() { task.cancel() }
    func hold() { task.hold() }
    func proceed() { task.proceed() }
}
