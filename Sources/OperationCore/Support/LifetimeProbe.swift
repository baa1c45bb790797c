// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if DEBUG
    /// Reports each queue and each operation that is made, so that tests can check that all of them are freed.
    package enum LifetimeProbe {
        /// A closure that is called with each object made in the task, in debug builds only.
        ///
        /// The default is nil.
        @TaskLocal package static var note: (@Sendable (AnyObject) -> Void)?
    }
#endif
