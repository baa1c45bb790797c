// swift-tools-version: 6.2

import PackageDescription

// The App Store wants a privacy manifest from each library that asks for the times of files or the room on a disk. Only a Mac
// builds for Apple platforms; elsewhere the resource would add a bundle to the library for nothing.
#if os(macOS)
    let privacyManifest: [Resource]? = [.copy("PrivacyInfo.xcprivacy")]
    let excluded: [String] = []
#else
    let privacyManifest: [Resource]? = nil
    let excluded = ["PrivacyInfo.xcprivacy"]
#endif

// Catches the exceptions of Objective-C that Apple's Foundation raises.
let exceptionGuard = Target.Dependency.target(
    name: "ExceptionGuard", condition: .when(platforms: [.macOS, .macCatalyst, .iOS, .tvOS, .watchOS, .visionOS]))

let package = Package(
    name: "OperationKit",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "OperationCore", targets: ["OperationCore"]),
        .library(name: "OperationNetworking", targets: ["OperationNetworking"]),
        .library(name: "OperationBackgroundSessions", targets: ["OperationBackgroundSessions"]),
        .library(name: "OperationFiles", targets: ["OperationFiles"]),
        .library(name: "OperationExporters", targets: ["OperationExporters"]),
        .library(name: "OperationTestKit", targets: ["OperationTestKit"]),
    ],
    targets: [
        .target(name: "OperationCore", exclude: excluded, resources: privacyManifest),
        // The declarations of libcurl, which is found in the running process: nothing is linked.
        .target(name: "CurlDeclarations"),
        .target(name: "ExceptionGuard"),
        .target(
            name: "OperationNetworking",
            dependencies: [
                "OperationCore", .target(name: "CurlDeclarations", condition: .when(platforms: [.linux])),
                exceptionGuard,
            ],
            exclude: excluded, resources: privacyManifest),
        .target(
            name: "OperationBackgroundSessions",
            dependencies: ["OperationCore", "OperationNetworking", exceptionGuard],
            exclude: excluded, resources: privacyManifest),
        .target(name: "OperationFiles", dependencies: ["OperationCore"]),
        .target(name: "OperationExporters", dependencies: ["OperationCore", "OperationNetworking"]),
        .target(name: "OperationTestKit", dependencies: ["OperationCore", "OperationNetworking"]),
        .executableTarget(
            name: "MainThreadProbe", dependencies: ["OperationCore"], path: "Tests/Fixtures/MainThreadProbe"),
        .executableTarget(
            name: "DownloadProbe", dependencies: ["OperationNetworking"], path: "Tests/Fixtures/DownloadProbe"),
        .executableTarget(
            name: "SessionProbe", dependencies: ["OperationNetworking"], path: "Tests/Fixtures/SessionProbe"),
        .executableTarget(
            name: "SharingProbe", dependencies: ["OperationCore", "OperationNetworking"],
            path: "Tests/Fixtures/SharingProbe"),
        .executableTarget(
            name: "EnvironmentProbe", dependencies: ["OperationNetworking"],
            path: "Tests/Fixtures/EnvironmentProbe"),
        .executableTarget(
            name: "ConnectivityProbe", dependencies: ["OperationNetworking"],
            path: "Tests/Fixtures/ConnectivityProbe"),
        .executableTarget(
            name: "ResolverProbe", dependencies: ["OperationCore", "OperationNetworking", "OperationTestKit"],
            path: "Tests/Fixtures/ResolverProbe"),
        .testTarget(
            name: "OperationCoreTests",
            dependencies: ["OperationCore", "OperationExporters", "OperationTestKit", "MainThreadProbe"]),
        .testTarget(name: "OperationFilesTests", dependencies: ["OperationFiles", "OperationTestKit"]),
        .testTarget(name: "OperationTestKitTests", dependencies: ["OperationTestKit"]),
        .testTarget(
            name: "OperationNetworkingTests",
            dependencies: [
                "OperationNetworking", "OperationBackgroundSessions", "OperationExporters", "OperationTestKit",
                "DownloadProbe", "SessionProbe", "SharingProbe", "EnvironmentProbe", "ConnectivityProbe",
                "ResolverProbe",
            ]),
    ]
)

for target in package.targets where !["CurlDeclarations", "ExceptionGuard"].contains(target.name) {
    target.swiftSettings = [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        // Where sessions on libcurl are compiled.
        .define("OPERATIONKIT_LIBCURL", .when(platforms: [.linux])),
    ]
}
