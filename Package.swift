// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

func system(_ name: String, pkgConfig: String, apt package: String) -> Target {
    .systemLibrary(name: name, path: "Sources/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

func room(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.byName(name: name), "TestSupport"] + dependencies, resources: resources,
        swiftSettings: strict)
}

let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let nioHTTPTypes: Target.Dependency = .product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let metrics: Target.Dependency = .product(name: "CoreMetrics", package: "swift-metrics")
let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioSockets: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let signals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let deque: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let yaml: Target.Dependency = .product(name: "Yams", package: "Yams")
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")

/// Set by Deploy/release; empty in local builds.
let commit = (Context.environment["WAKU_PUSH_COMMIT"] ?? "").filter(\.isHexDigit)

let package = Package(
    name: "waku-push",
    products: [
        .executable(name: "waku-push", targets: ["waku-push"]),
        .library(name: "PushClient", targets: ["PushClient"]),
        .library(name: "PushClientSQLite", targets: ["PushClientSQLite"]),
        .library(name: "WakuCrypto", targets: ["WakuCrypto"]),
        .library(name: "Waku", targets: ["Waku"]),
        .library(name: "StatusProtocol", targets: ["StatusProtocol"]),
        .library(name: "GossipSub", targets: ["GossipSub"]),
        .library(name: "WakuP2P", targets: ["WakuP2P"]),
        .library(name: "LibP2P", targets: ["LibP2P"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-collections.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.34.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"),
    ],
    targets: [
        system("CSecp256k1", pkgConfig: "libsecp256k1", apt: "libsecp256k1-dev"),
        system("COpenSSL", pkgConfig: "libcrypto", apt: "libssl-dev"),
        system("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        system("CProtobufC", pkgConfig: "libprotobuf-c", apt: "libprotobuf-c-dev"),
        .target(name: "CPushMessages", dependencies: ["CProtobufC"]),
        .target(name: "CVersion", cSettings: [.define("WAKU_PUSH_COMMIT", to: commit)]),

        room("WakuCrypto", ["CSecp256k1", "COpenSSL"]),
        room("Primitives"),
        room("ProtobufWire"),
        room("NIOSupport", [logging, nio]),
        room("Waku", ["ProtobufWire", "WakuCrypto", "CPushMessages"]),
        room("StatusProtocol", ["ProtobufWire", "Waku", "WakuCrypto", "CPushMessages"]),
        room("GossipSub", ["Primitives", "ProtobufWire", "WakuCrypto"]),
        room("LibP2P", ["NIOSupport", "ProtobufWire", "WakuCrypto", logging, nio, nioSockets]),
        room("WakuP2P", ["GossipSub", "LibP2P", "ProtobufWire", "Waku", "WakuCrypto", logging, nio, nioSockets]),
        room("PushServer", ["Primitives", "StatusProtocol", "WakuCrypto"]),
        room("PushStore", ["ProtobufWire", "StatusProtocol", "Waku", "WakuCrypto", deque, grdb, sqlite]),
        room("CurlClient", ["CCurl"]),
        room("Gorush", ["CurlClient", "StatusProtocol", "Waku", "WakuCrypto"]),
        room("NwakuRelay", ["Waku", "WakuCrypto", "CurlClient", logging]),
        room("Prometheus", [metrics]),
        room("HTTPService", ["NIOSupport", hummingbird, hummingbirdCore, httpTypes, lifecycle, logging, nio, nioHTTPTypes]),
        room("LoopbackRelay", ["HTTPService", "Waku", "WakuCrypto", hummingbird, logging, nio]),
        room(
            "PushNode",
            [
                "PushServer", "PushStore", "Gorush", "HTTPService", "Primitives", "Prometheus", "ProtobufWire", "StatusProtocol", "Waku",
                "WakuCrypto", hummingbird, deque, httpTypes, logging, metrics, nio, lifecycle,
            ]),
        room("Systemd"),
        room("PushClient", ["StatusProtocol", "Waku", "WakuCrypto"]),
        room("PushClientSQLite", ["PushClient", "WakuCrypto", grdb, sqlite]),
        room(
            "PushBench",
            [
                "CSecp256k1", "COpenSSL", "CPushMessages", "CCurl", "PushNode", "PushServer", "PushStore", "Gorush", "NwakuRelay",
                "LoopbackRelay", "HTTPService",
                "CurlClient", "GossipSub", "LibP2P", "StatusProtocol", "Waku", "WakuCrypto", "WakuP2P", sqlite, hummingbird, lifecycle,
                logging, nio,
            ]),
        room(
            "WakuPushCommands",
            [
                "PushBench", "PushNode", "PushClient", "PushClientSQLite", "PushStore", "NwakuRelay", "LoopbackRelay", "LibP2P",
                "StatusProtocol", "Waku",
                "WakuCrypto", "WakuP2P", "CurlClient", "CVersion", "HTTPService", "Systemd", hummingbird, logging, lifecycle, signals,
                arguments, yaml,
            ]),
        .executableTarget(name: "waku-push", dependencies: ["WakuPushCommands"], swiftSettings: strict),

        .target(name: "CFaultVFS", path: "Tests/CFaultVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "TestSupport",
            dependencies: ["CFaultVFS", "Primitives", "PushServer", "StatusProtocol", "Waku", "WakuCrypto", hummingbird],
            path: "Tests/TestSupport",
            resources: [.copy("Vectors")], swiftSettings: strict),
        // Runs waku-push as a process, which is built for itself.
        .executableTarget(
            name: "crash-test",
            dependencies: [
                "TestSupport", "PushClient", "PushStore", "HTTPService", "LoopbackRelay", "StatusProtocol", "Waku", "WakuCrypto",
                "CurlClient",
                grdb, hummingbird, logging, nio, arguments,
            ], path: "Tests/CrashTest", swiftSettings: strict),
        tests("WakuCrypto"),
        tests("Primitives"),
        tests("ProtobufWire"),
        tests("NIOSupport", [logging, nio, nioEmbedded]),
        tests("Waku", ["ProtobufWire", "WakuCrypto"]),
        tests("LibP2P", ["ProtobufWire", "WakuCrypto", logging, nio, nioSockets, nioEmbedded]),
        tests("StatusProtocol", ["ProtobufWire", "Waku", "WakuCrypto", "CPushMessages"]),
        tests("GossipSub", ["ProtobufWire", "WakuCrypto"]),
        tests("WakuP2P", ["GossipSub", "LibP2P", "ProtobufWire", "Waku", "WakuCrypto", logging, nio, nioSockets]),
        .testTarget(
            name: "FuzzTests", dependencies: ["GossipSub", "LibP2P", "ProtobufWire", "WakuP2P", "Waku", "WakuCrypto", "TestSupport", nio],
            swiftSettings: strict),
        tests("PushServer", ["StatusProtocol", "Waku", "WakuCrypto"]),
        tests("PushStore", ["StatusProtocol", "Waku", "WakuCrypto", grdb]),
        tests("Prometheus", [metrics]),
        tests("CurlClient", [hummingbird]),
        tests("Gorush", ["CurlClient", "StatusProtocol", "Waku", "WakuCrypto", hummingbird]),
        tests("NwakuRelay", ["LoopbackRelay", "Waku", "WakuCrypto", "CurlClient", hummingbird, lifecycle, logging, nio]),
        tests("HTTPService", [hummingbird, httpTypes, logging, nio, nioEmbedded, nioHTTPTypes]),
        tests("LoopbackRelay", ["Waku", "WakuCrypto", hummingbird]),
        tests(
            "PushNode",
            [
                "PushServer", "PushStore", "PushClient", "Gorush", "NwakuRelay", "LoopbackRelay", "Prometheus", "StatusProtocol", "Waku",
                "WakuCrypto",
                "CurlClient", grdb, hummingbird, logging, lifecycle,
            ]),
        tests("PushBench", ["StatusProtocol", "Waku"]),
        tests("Systemd"),
        tests("PushClient", ["Primitives", "StatusProtocol", "Waku", "WakuCrypto"]),
        tests("PushClientSQLite", ["PushClient", "StatusProtocol", "Waku", "WakuCrypto", grdb]),
        tests(
            "WakuPushCommands",
            ["LibP2P", "PushNode", "PushServer", "PushStore", "StatusProtocol", "Waku", "WakuCrypto", "WakuP2P", grdb, arguments]),
        // Depends on the program so that it is built: it is run, not imported.
        .testTarget(
            name: "CommandLineTests",
            dependencies: [
                "waku-push", "TestSupport", "PushClient", "PushStore", "NwakuRelay", "LibP2P", "StatusProtocol", "Waku", "WakuCrypto",
                "WakuP2P", "CurlClient", grdb, logging,
            ],
            path: "Tests/waku-pushTests", swiftSettings: strict),
    ]
)
