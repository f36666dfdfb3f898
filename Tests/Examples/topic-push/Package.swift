// swift-tools-version: 6.2
import PackageDescription

// A program with a protocol of its own, outside the package waku-push: see the article YourOwnProtocol of WakuPushNode.
let settings: [SwiftSetting] = [.enableUpcomingFeature("MemberImportVisibility"), .enableUpcomingFeature("InternalImportsByDefault")]

let package = Package(
    name: "topic-push",
    dependencies: [.package(name: "waku-push", path: "../../..")],
    targets: [
        .target(name: "TopicPush", dependencies: [.product(name: "WakuPushNode", package: "waku-push")], swiftSettings: settings),
        .executableTarget(
            name: "my-push", dependencies: ["TopicPush", .product(name: "WakuPushNode", package: "waku-push")], swiftSettings: settings),
    ])
