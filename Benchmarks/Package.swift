// swift-tools-version: 6.2

import PackageDescription

// One executable for each workload, so that its name is all there is to say:
// `swift run -c release --package-path Benchmarks operations`
let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "downloader", targets: ["DownloaderBenchmark"]),
        .executable(name: "groups", targets: ["GroupsBenchmark"]),
        .executable(name: "network-operations", targets: ["NetworkOperationsBenchmark"]),
        .executable(name: "operations", targets: ["OperationsBenchmark"]),
        .executable(name: "resilience", targets: ["ResilienceBenchmark"]),
        .executable(name: "scheduling", targets: ["SchedulingBenchmark"]),
        .executable(name: "transport", targets: ["TransportBenchmark"]),
    ],
    dependencies: [.package(name: "OperationKit", path: "..")],
    targets: [
        .target(name: "AllocationCounter"),
        .target(name: "BenchmarkSupport", dependencies: ["AllocationCounter"]),
        .target(name: "NetworkBenchmarkSupport"),
        .executableTarget(
            name: "DownloaderBenchmark", dependencies: ["BenchmarkSupport", "NetworkBenchmarkSupport"]
        ),
        .executableTarget(
            name: "OperationsBenchmark",
            dependencies: ["BenchmarkSupport", .product(name: "OperationCore", package: "OperationKit")]
        ),
        .executableTarget(
            name: "SchedulingBenchmark",
            dependencies: ["BenchmarkSupport", .product(name: "OperationCore", package: "OperationKit")]
        ),
        .executableTarget(
            name: "GroupsBenchmark",
            dependencies: ["BenchmarkSupport", .product(name: "OperationCore", package: "OperationKit")]
        ),
        .executableTarget(
            name: "TransportBenchmark",
            dependencies: [
                "BenchmarkSupport", "NetworkBenchmarkSupport",
                .product(name: "OperationNetworking", package: "OperationKit"),
            ]
        ),
        .executableTarget(
            name: "NetworkOperationsBenchmark",
            dependencies: [
                "AllocationCounter", "BenchmarkSupport", "NetworkBenchmarkSupport",
                .product(name: "OperationNetworking", package: "OperationKit"),
            ]
        ),
        .executableTarget(
            name: "ResilienceBenchmark",
            dependencies: [
                "AllocationCounter", "BenchmarkSupport", "NetworkBenchmarkSupport",
                .product(name: "OperationExporters", package: "OperationKit"),
                .product(name: "OperationNetworking", package: "OperationKit"),
                .product(name: "OperationTestKit", package: "OperationKit"),
            ]
        ),
    ]
)

for target in package.targets where target.name != "AllocationCounter" {
    target.swiftSettings = [
        .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
        // Where OperationNetworking has sessions on libcurl.
        .define("OPERATIONKIT_LIBCURL", .when(platforms: [.linux])),
    ]
}
