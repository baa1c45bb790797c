// Part of OperationKit, released under the MIT licence.
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
    /// How much of a cover was sent, from 0 to 1; `nil` while none is sent.
    public private(set) var sentFraction: Double?
    /// What a view sets to draw itself again.
    public var onChange: ((State) -> Void)?

    private let catalog: Catalog
    // When the screen is freed, so is the token, and that cancels the operations of the screen.
    private let work = OperationOwnerToken()
    private var search: SearchAlbums?

    public init(_ catalog: Catalog) { self.catalog = catalog }

    public func showAll() {
        state = .loading
        start(ListAlbums(catalog)) { $0.state = .loaded($1.albums) }
    }

    /// Searches for a text, in place of the last search.
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

    /// Stops all work of the screen.
    ///
    /// After it has returned, nothing changes the screen any more.
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
