// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

/// An album of the service.
public struct Album: Decodable, Equatable, Sendable {
    public let title: String

    public init(title: String) { self.title = title }
}

/// The view model of a screen that shows a list of albums.
///
/// The view model runs on the main actor, so it adds its closures with `onMainActor`. The package compiles this file in
/// the Swift 5 and in the Swift 6 language mode.
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
    /// A closure that a view sets, so that the view can redraw itself when the state changes.
    public var onChange: ((State) -> Void)?

    private let service: NetworkBase
    private var request: EndpointOperation<[Album]>?

    public init(service: NetworkBase) {
        self.service = service
    }

    deinit {
        // The screen no longer exists, so nothing needs the albums.
        request?.cancel()
    }

    /// Loads the list of albums, and cancels an earlier request that is still in progress.
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
    /// After this method returns, no request changes the state. An album list that was loaded before stays visible.
    public func cancel() {
        request?.cancel()
        if case .loading = state { state = .empty }
    }
}
