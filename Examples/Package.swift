// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "opget", targets: ["opget"]),
        .executable(name: "quickstart", targets: ["quickstart"]),
        .executable(name: "resilience", targets: ["resilience"]),
        .executable(name: "albums", targets: ["albums"]),
        .executable(name: "AlbumClient", targets: ["AlbumClient"]),
    ],
    dependencies: [.package(name: "OperationKit", path: "..")],
    targets: [
        .executableTarget(
            name: "quickstart",
            dependencies: [
                .product(name: "OperationCore", package: "OperationKit"),
                .product(name: "OperationExporters", package: "OperationKit"),
                .product(name: "OperationNetworking", package: "OperationKit"),
                .product(name: "OperationTestKit", package: "OperationKit"),
                "TerminalDisplay",
            ]
        ),
        .executableTarget(
            name: "resilience",
            dependencies: [
                .product(name: "OperationCore", package: "OperationKit"),
                .product(name: "OperationNetworking", package: "OperationKit"),
                .product(name: "OperationTestKit", package: "OperationKit"),
            ]
        ),
        .executableTarget(
            name: "albums",
            dependencies: [
                .product(name: "OperationNetworking", package: "OperationKit"),
                .product(name: "OperationTestKit", package: "OperationKit"),
            ]
        ),
        .executableTarget(
            name: "AlbumClient",
            dependencies: [.product(name: "OperationNetworking", package: "OperationKit")]
        ),
        // A screen, in both language modes: the second target has a link to the source of the first one.
        .target(
            name: "AlbumScreen", dependencies: [.product(name: "OperationNetworking", package: "OperationKit")]
        ),
        .target(
            name: "AlbumScreenSwift5", dependencies: [.product(name: "OperationNetworking", package: "OperationKit")]
        ),
        .testTarget(
            name: "AlbumScreenTests",
            dependencies: ["AlbumScreen", .product(name: "OperationTestKit", package: "OperationKit")]
        ),
        .testTarget(
            name: "AlbumScreenSwift5Tests",
            dependencies: ["AlbumScreenSwift5", .product(name: "OperationTestKit", package: "OperationKit")]
        ),
        // A base class for the requests of a service, a class for each endpoint, and a screen, each in its own module
        // for each language mode.
        .target(
            name: "CatalogService",
            dependencies: [.product(name: "OperationNetworking", package: "OperationKit")]
        ),
        .target(name: "CatalogEndpoints", dependencies: ["CatalogService"]),
        .target(name: "CatalogScreen", dependencies: ["CatalogEndpoints"]),
        .testTarget(
            name: "CatalogTests",
            dependencies: ["CatalogScreen", .product(name: "OperationTestKit", package: "OperationKit")]
        ),
        .target(
            name: "CatalogServiceSwift5",
            dependencies: [.product(name: "OperationNetworking", package: "OperationKit")]
        ),
        .target(name: "CatalogEndpointsSwift5", dependencies: ["CatalogServiceSwift5"]),
        .target(name: "CatalogScreenSwift5", dependencies: ["CatalogEndpointsSwift5"]),
        .testTarget(
            name: "CatalogSwift5Tests",
            dependencies: ["CatalogScreenSwift5", .product(name: "OperationTestKit", package: "OperationKit")]
        ),
        .target(
            name: "TerminalDisplay", dependencies: [.product(name: "OperationCore", package: "OperationKit")]
        ),
        .executableTarget(
            name: "opget",
            dependencies: [
                "TerminalDisplay", .product(name: "OperationCore", package: "OperationKit"),
                .product(name: "OperationFiles", package: "OperationKit"),
                .product(name: "OperationNetworking", package: "OperationKit"),
            ]
        ),
        .testTarget(
            name: "TerminalDisplayTests",
            dependencies: [
                "TerminalDisplay", "ScreenModel", .product(name: "OperationTestKit", package: "OperationKit"),
            ]
        ),
        .target(name: "TerminalTestSupport", path: "Tests/TerminalTestSupport"),
        .testTarget(
            name: "AlbumServiceTests",
            dependencies: [
                "quickstart", "TerminalDisplay",
                .product(name: "OperationCore", package: "OperationKit"),
                .product(name: "OperationNetworking", package: "OperationKit"),
                .product(name: "OperationTestKit", package: "OperationKit"),
            ]
        ),
        .testTarget(name: "QuickstartTests", dependencies: ["quickstart", "ScreenModel", "TerminalTestSupport"]),
        .testTarget(
            name: "OpgetTests",
            dependencies: [
                "opget", "ScreenModel", "TerminalDisplay", "TerminalTestSupport",
                .product(name: "OperationTestKit", package: "OperationKit"),
                .product(name: "OperationNetworking", package: "OperationKit"),
            ]
        ),
        .target(name: "ScreenModel", path: "Tests/ScreenModel"),
        .testTarget(
            name: "OwnOperationTests",
            dependencies: [
                .product(name: "OperationNetworking", package: "OperationKit"),
                .product(name: "OperationTestKit", package: "OperationKit"),
            ]
        ),
    ]
)

for target in package.targets {
    let isOlder = target.name.contains("Swift5")
    target.swiftSettings = [
        .swiftLanguageMode(isOlder ? .v5 : .v6), .enableUpcomingFeature("ExistentialAny"),
        // Where OperationNetworking has sessions on libcurl.
        .define("OPERATIONKIT_LIBCURL", .when(platforms: [.linux])),
    ]
    if isOlder { target.swiftSettings?.append(.define("SWIFT_5_MODE")) }
}
