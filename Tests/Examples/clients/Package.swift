// swift-tools-version: 6.2
import PackageDescription

// A package of its own, as an application's: it depends on this repository as others do, without what only the node needs.
let package = Package(
    name: "clients",
    dependencies: [
        .package(name: "waku-push", path: "../../..", traits: []),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    ],
    targets: ["bot", "sender", "listener", "share"].map { name in
        .executableTarget(
            name: name,
            dependencies: [
                .product(name: "LibP2P", package: "waku-push"),
                .product(name: "PushClient", package: "waku-push"),
                .product(name: "PushClientSQLite", package: "waku-push"),
                .product(name: "WakuP2P", package: "waku-push"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: [.enableUpcomingFeature("MemberImportVisibility"), .treatAllWarnings(as: .error)])
    })
