// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What an operation finds wrong with a response, or with itself.
extension NetworkError.Code {
    /// The status of the response is none of those that are accepted.
    public static let unacceptableStatus = Self("unacceptableStatus")
    /// The response is of another type than those that are accepted.
    public static let unacceptableContentType = Self("unacceptableContentType")
    /// There is no body where there should be one.
    public static let emptyResponse = Self("emptyResponse")
    /// The body is not what the decoder expected.
    public static let undecodableResult = Self("undecodableResult")
    /// Two tasks iterate over one response at the same time.
    public static let awaitedTwice = Self("awaitedTwice")
    /// A rule of the user's refused the response.
    public static let responseRefused = Self("responseRefused")
    /// The evaluator, or a hook of the operation, threw an error of the user's own, which is the ``NetworkError/cause``.
    public static let evaluationFailed = Self("evaluationFailed")
    /// The body cannot be sent by the task that a hook made.
    public static let unsupportedBody = Self("unsupportedBody")
    /// A hook returned a task of another session that it had already called, or wrapped one of several of them, so the
    /// response cannot reach the operation.
    public static let unboundTask = Self("unboundTask")
    /// The hook that prepares the request threw an error of the user's own, which is the ``NetworkError/cause``.
    public static let preparationFailed = Self("preparationFailed")
}
