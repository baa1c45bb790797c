// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking

/// An album of the service.
public struct Album: Decodable, Equatable, Sendable {
    public let title: String

    public init(title: String) { self.title = title }
}

/// The view model of a screen that shows a list of albums.
///
/// Everything in it belongs to the main actor, so its closures are added with `onMainActor`. It is compiled in the Swift 5 and
/// in the Swift 6 language mode.
@MainActor
public final class AlbumScreen {
    public enum State: Equatable {
        case empty
        case loading(fraction: Double?)
        case loaded([Album])
        case failed(String)
    }

    public private(set) var state = State.empty {
        didSet { onChange?(state) }
    }
    /// What a view sets to draw itself again.
    public var onChange: ((State) -> Void)?

    private let service: NetworkBase
    private var request: EndpointOperation<[Album]>?

    public init(service: NetworkBase) {
        self.service = service
    }

    deinit {
        // The screen is gone, so nothing waits for the albums any more.
        request?.cancel()
    }

    /// Loads the list, in place of one that is being loaded.
    public func load() {
        request?.cancel()
        state = .loading(fraction: nil)
        let request = service.get("albums", as: [Album].self)
            .onMainActor(downloadProgress: { [weak self] in self?.state = .loading(fraction: $0.fraction) })
            .onMainActor(
                success: { [weak self] in self?.state = .loaded($0) },
                failure: { [weak self] in self?.state = .failed($0.message) })
        self.request = request
        request.startAndKeepAlive()
    }

    /// Stops loading.
    ///
    /// After it has returned, nothing changes the state any more. A list that was loaded stays.
    public func cancel() {
        request?.cancel()
        if case .loading = state { state = .empty }
    }
}
