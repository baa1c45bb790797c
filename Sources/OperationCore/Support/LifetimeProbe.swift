// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if DEBUG
    /// Reports each queue and each operation that is made, so that tests can check that it is freed.
    package enum LifetimeProbe {
        /// Called with each object that is made in the task, in debug builds only; nil to call nothing.
        @TaskLocal package static var note: (@Sendable (AnyObject) -> Void)?
    }
#endif
