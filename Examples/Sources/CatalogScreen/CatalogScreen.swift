// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

#if SWIFT_5_MODE
    import CatalogEndpointsSwift5
    import CatalogServiceSwift5
#else
    import CatalogEndpoints
    import CatalogService
#endif

/// The view model of a screen that shows, searches and changes the albums of a catalog.
@MainActor
public final class CatalogScreen {
    public enum State: Equatable {
        case empty
        case loading
        case loaded([Album])
        case failed(String)
    }

    public private(set) var state = State.empty {
        didSet { onChange?(state) }
    }
    /// The fraction of a cover that was sent, from 0 to 1, or `nil` if no upload is in progress.
    public private(set) var sentFraction: Double?
    /// A closure that a view sets, so that the view can redraw itself when the state changes.
    public var onChange: ((State) -> Void)?

    private let catalog: Catalog
    // When the screen is deallocated, so is the token. The token then cancels the operations of the screen.
    private let work = OperationOwnerToken()
    private var search: SearchAlbums?

    public init(_ catalog: Catalog) { self.catalog = catalog }

    public func showAll() {
        state = .loading
        start(ListAlbums(catalog)) { $0.state = .loaded($1.albums) }
    }

    /// Searches for a text, and cancels the previous search.
    public func search(for text: String) {
        search?.cancel()
        state = .loading
        let search = SearchAlbums(text, in: catalog)
        self.search = search
        start(search) { $0.state = .loaded($1) }
    }

    public func add(_ title: String) {
        start(CreateAlbum(title, in: catalog)) { screen, album in screen.change { $0 + [album] } }
    }

    public func delete(_ album: Album) {
        start(DeleteAlbum(album.id, in: catalog)) { screen, _ in screen.change { $0.filter { $0 != album } } }
    }

    public func sendCover(_ file: URL, of album: Album) {
        let upload = UploadCover(file, of: album.id, in: catalog)
            .onMainActor(uploadProgress: { [weak self] in self?.sentFraction = $0.fraction })
        start(upload) { screen, changed in
            screen.sentFraction = nil
            screen.change { $0.map { $0.id == changed.id ? changed : $0 } }
        }
    }

    /// Cancels all operations of the screen.
    ///
    /// After this method returns, no operation changes the screen.
    public func close() {
        work.cancelOperations()
        (state, sentFraction) = (.empty, nil)
    }

    private func start<ResultType>(
        _ operation: CatalogOperation<ResultType>, show: @escaping @MainActor (CatalogScreen, ResultType) -> Void
    ) {
        operation.owner = work.owner
        operation
            .onMainActor(
                success: { [weak self] result in if let self { show(self, result) } },
                failure: { [weak self] error in self?.state = .failed(error.catalogProblem?.error ?? error.message) }
            )
            .startAndKeepAlive()
    }

    private func change(_ change: ([Album]) -> [Album]) {
        if case .loaded(let albums) = state { state = .loaded(change(albums)) }
    }
}
