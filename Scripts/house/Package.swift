// swift-tools-version: 6.2

import PackageDescription

// The package with the programs that Scripts/count-house measures.
let package = Package(
    name: "House",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "OperationKit", path: "../..")],
    targets: [
        .executableTarget(
            name: "App", dependencies: [.product(name: "OperationNetworking", package: "OperationKit")]),
        .executableTarget(
            name: "Get", dependencies: [.product(name: "OperationNetworking", package: "OperationKit"), "Counters"]),
        .executableTarget(
            name: "Pair", dependencies: [.product(name: "OperationCore", package: "OperationKit"), "Counters"]),
        .target(name: "Counters"),
    ]
)
