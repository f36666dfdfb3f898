// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

/// Of tests. Not optimized in a release build either: that would take longer than running them. No product contains them, so packages that
/// depend on this one do not meet the unsafe flag.
let testing: [SwiftSetting] = strict + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

func system(_ name: String, pkgConfig: String, apt package: String) -> Target {
    .systemLibrary(name: name, path: "Sources/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// A target that other targets import. The products list those that other packages may import.
func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.byName(name: name), "TestSupport"] + dependencies, resources: resources,
        swiftSettings: testing)
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
let heap: Target.Dependency = .product(name: "HeapModule", package: "swift-collections")
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
        .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(name: "CVersion", cSettings: [.define("WAKU_PUSH_COMMIT", to: commit)]),

        library("WakuCrypto", ["CSecp256k1", "COpenSSL"]),
        library("Primitives"),
        library("ProtobufWire"),
        library("Cluster", ["Primitives"]),
        // Optional libraries: prototypes of what is opened at run time.
        .target(name: "CSodium"),
        .target(name: "CZeroMQ"),
        .target(name: "CPostgres"),
        library("Sodium", ["CSodium", "Primitives", "WakuCrypto"]),
        library("SessionProtocol", ["PushTypes", "Sodium", "WakuCrypto"]),
        library("SessionRules", ["PushTypes", "SessionProtocol", "WakuCrypto"]),
        library("SessionSwarms", ["Primitives", "SessionProtocol"]),
        library("OxenMQ", ["CZeroMQ", "Primitives", "WakuCrypto"]),
        library("SessionStandIns", ["OxenMQ", "PushTypes", "SessionProtocol", "Sodium", "WakuCrypto"]),
        library("SessionMonitoring", ["OxenMQ", "Primitives", "SessionProtocol", "SessionRules", "SessionSwarms", deque, logging]),
        library("NIOSupport", [logging, nio]),
        library("Waku", ["Primitives", "ProtobufWire", "WakuCrypto", "CPushMessages"]),
        library("StatusProtocol", ["ProtobufWire", "PushTypes", "Waku", "WakuCrypto", "CPushMessages"]),
        library("GossipSub", ["Primitives", "ProtobufWire", "WakuCrypto"]),
        library("LibP2P", ["NIOSupport", "Primitives", "ProtobufWire", "WakuCrypto", logging, nio, nioSockets]),
        library("WakuP2P", ["GossipSub", "LibP2P", "Primitives", "ProtobufWire", "Waku", "WakuCrypto", logging, nio, nioSockets]),
        library("PushTypes", ["WakuCrypto"]),
        library("Storage", ["Primitives", "WakuCrypto", deque]),
        library("StoreSQLite", ["CSQLite", "Storage", "WakuCrypto", grdb, sqlite]),
        library("ClusterPostgreSQL", ["Cluster", "Primitives", "Storage", "StorePostgreSQL", "WakuCrypto"]),
        library("StorePostgreSQL", ["CPostgres", "Primitives", "Storage", "WakuCrypto"]),
        library("Delivery", ["Gorush", "NodeMetrics", "Primitives", "PushTypes", "Storage", "Waku", "WakuCrypto", logging]),
        library("StatusRules", ["Primitives", "PushTypes", "StatusProtocol", "Waku", "WakuCrypto"]),
        library("CurlClient", ["CCurl", "Primitives"]),
        library("Gorush", ["CurlClient", "PushTypes", "Waku", "WakuCrypto"]),
        library("NwakuRelay", ["Primitives", "Waku", "WakuCrypto", "CurlClient", logging]),
        library("Prometheus", [metrics]),
        library("HealthChecks", ["Waku"]),
        library("AdminProtocol", ["Delivery", "Gorush", "HealthChecks", "Waku"]),
        library(
            "Doctor",
            [
                "AdminProtocol", "Delivery", "Gorush", "HealthChecks", "NodeMetrics", "NwakuRelay", "PushTypes", "StatusServer", "Storage",
                "Waku",
            ]),
        library("StatusPage", ["NodeMetrics", "Primitives", "Waku", "WakuCrypto"]),
        library("NodeMetrics", ["Primitives", "Prometheus", "Waku", logging, metrics]),
        library("HTTPService", ["NIOSupport", hummingbird, hummingbirdCore, httpTypes, lifecycle, logging, nio, nioHTTPTypes]),
        library("LoopbackRelay", ["HTTPService", "Primitives", "Waku", "WakuCrypto", hummingbird, logging, nio]),
        library(
            "PushNode",
            [
                "AdminProtocol", "Cluster", "ClusterPostgreSQL", "Delivery", "Gorush", "HTTPService", "HealthChecks", "NodeMetrics",
                "Primitives",
                "Prometheus", "PushTypes", "StatusPage", "Storage", "StorePostgreSQL", "StoreSQLite", "Waku", "WakuCrypto", hummingbird,
                deque, httpTypes,
                logging, nio, lifecycle,
            ]),
        library(
            "StatusServer",
            [
                "Delivery", "Gorush", "NodeMetrics", "Primitives", "ProtobufWire", "PushNode", "PushTypes", "StatusProtocol",
                "StatusRules", "Storage", "Waku", "WakuCrypto", logging,
            ]),
        library(
            "StatusV01Server",
            [
                "Delivery", "Gorush", "NodeMetrics", "ProtobufWire", "PushNode", "PushTypes", "StatusProtocol", "StatusRules", "Storage",
                "Waku", "WakuCrypto", logging,
            ]),
        library(
            "SessionServer",
            [
                "Cluster", "Delivery", "Gorush", "HTTPService", "HealthChecks", "NodeMetrics", "Primitives", "PushNode", "PushTypes",
                "SessionMonitoring", "SessionProtocol", "SessionRules", "SessionSwarms", "Sodium", "StatusProtocol", "StatusRules",
                "Storage", "Waku", "WakuCrypto", deque, httpTypes, hummingbird, logging, nio, nioSockets,
            ]),
        library(
            "NodeAssembly",
            [
                "Delivery", "NodeMetrics", "PushNode", "SessionServer", "StatusRules", "StatusServer", "StatusV01Server", "Storage",
                "StoreSQLite", "Waku", "WakuCrypto", logging,
            ]),
        library(
            "StatusGoImport",
            ["COpenSSL", "PushTypes", "StatusProtocol", "StatusServer", "Waku", "WakuCrypto", grdb, sqlite]),
        library("Systemd"),
        library("PushClient", ["Primitives", "PushTypes", "StatusProtocol", "Waku", "WakuCrypto"]),
        library("PushClientSQLite", ["PushClient", "WakuCrypto", grdb, sqlite]),
        library(
            "PushBench",
            [
                "Cluster", "Delivery", "NodeAssembly", "PushTypes", "StatusServer", "StatusV01Server", "Storage",
                "CSecp256k1", "COpenSSL", "CPostgres", "CPushMessages", "CCurl", "NodeMetrics", "PushNode", "StatusRules",
                "StorePostgreSQL", "StoreSQLite", "Gorush",
                "NwakuRelay",
                "LoopbackRelay", "HTTPService",
                "CurlClient", "GossipSub", "LibP2P", "OxenMQ", "Primitives", "SessionMonitoring", "SessionProtocol", "SessionRules",
                "SessionServer", "SessionStandIns", "SessionSwarms", "Sodium", "StatusProtocol", "Waku", "WakuCrypto", "WakuP2P", sqlite,
                hummingbird, lifecycle, logging, nio,
            ]),
        library(
            "WakuPushCommands",
            [
                "Delivery", "Gorush", "NodeAssembly", "NodeMetrics", "PushTypes", "StatusRules", "StatusServer", "StatusV01Server",
                "Storage",
                "AdminProtocol", "Cluster", "ClusterPostgreSQL", "Doctor", "HealthChecks", "PushBench", "PushNode", "PushClient",
                "PushClientSQLite", "StorePostgreSQL",
                "StoreSQLite", "OxenMQ", "Primitives", "SessionMonitoring", "SessionProtocol", "SessionServer", "SessionStandIns", "Sodium",
                "StatusGoImport", "NwakuRelay",
                "LoopbackRelay", "LibP2P", "StatusProtocol", "Waku",
                "WakuCrypto", "WakuP2P", "CurlClient", "CVersion", "HTTPService", "Systemd", hummingbird, logging, lifecycle, signals,
                arguments, yaml,
            ]),
        .executableTarget(name: "waku-push", dependencies: ["WakuPushCommands"], swiftSettings: strict),

        .target(name: "CFaultVFS", path: "Tests/CFaultVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "TestSupport",
            dependencies: [
                "CFaultVFS", "Primitives", "PushTypes", "SessionProtocol", "SessionStandIns", "Sodium", "StatusRules", "StatusProtocol",
                "Waku", "WakuCrypto",
                heap, hummingbird,
            ],
            path: "Tests/TestSupport",
            resources: [.copy("Vectors")], swiftSettings: strict),
        // Runs waku-push as a process, which is built for itself.
        .executableTarget(
            name: "crash-test",
            dependencies: [
                "TestSupport", "Delivery", "NodeAssembly", "OxenMQ", "Primitives", "PushClient", "PushClientSQLite", "PushTypes",
                "SessionProtocol", "SessionRules", "SessionServer", "SessionStandIns", "Sodium", "StatusServer", "StatusV01Server",
                "Storage", "StorePostgreSQL", "StoreSQLite", "PushNode", "HTTPService", "LoopbackRelay", "StatusProtocol", "Waku",
                "WakuCrypto", "CurlClient",
                grdb, hummingbird, logging, nio, arguments,
            ], path: "Tests/CrashTest", swiftSettings: strict),
        tests("WakuCrypto"),
        tests("Primitives"),
        tests("ProtobufWire"),
        tests("Cluster", ["Primitives"]),
        tests("Sodium", ["CPostgres", "CSodium", "CZeroMQ", "Primitives", "WakuCrypto"]),
        tests("SessionProtocol", ["PushTypes", "Sodium", "WakuCrypto"]),
        tests("SessionRules", ["PushTypes", "SessionProtocol", "WakuCrypto"]),
        tests(
            "SessionServer",
            [
                "Cluster", "CurlClient", "Delivery", "Gorush", "NodeAssembly", "NodeMetrics", "Primitives", "PushNode", "PushTypes",
                "SessionMonitoring", "SessionProtocol", "SessionRules",
                "SessionSwarms", "Sodium", "StatusRules", "Storage", "StorePostgreSQL", "StoreSQLite", "Waku", "WakuCrypto", grdb,
                logging, lifecycle,
            ]),
        tests("SessionSwarms", ["Primitives", "SessionProtocol"]),
        tests("OxenMQ", ["Primitives", "WakuCrypto"]),
        tests("SessionStandIns", ["OxenMQ", "PushTypes", "SessionProtocol", "Sodium", "WakuCrypto"]),
        tests(
            "SessionMonitoring",
            ["SessionStandIns", "OxenMQ", "Primitives", "SessionProtocol", "SessionSwarms", "Sodium", "WakuCrypto", logging]),
        tests("NIOSupport", [logging, nio, nioEmbedded]),
        tests("Waku", ["Primitives", "ProtobufWire", "WakuCrypto"]),
        tests("LibP2P", ["Primitives", "ProtobufWire", "WakuCrypto", logging, nio, nioSockets, nioEmbedded]),
        tests("StatusProtocol", ["ProtobufWire", "PushTypes", "Waku", "WakuCrypto", "CPushMessages"]),
        tests("GossipSub", ["Primitives", "ProtobufWire", "WakuCrypto"]),
        tests("WakuP2P", ["GossipSub", "LibP2P", "Primitives", "ProtobufWire", "Waku", "WakuCrypto", logging, nio, nioSockets]),
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "GossipSub", "LibP2P", "OxenMQ", "ProtobufWire", "PushTypes", "SessionProtocol", "SessionStandIns", "StatusProtocol",
                "WakuP2P", "Waku", "WakuCrypto", "TestSupport", nio,
            ],
            swiftSettings: testing),
        tests("StatusRules", ["PushTypes", "StatusProtocol", "Waku", "WakuCrypto"]),
        // What every engine of the store must keep to.
        .target(
            name: "StoreContract", dependencies: ["Storage", "TestSupport", "WakuCrypto"], path: "Tests/StoreContract",
            swiftSettings: testing),
        tests(
            "StoreSQLite",
            ["Delivery", "PushTypes", "StatusProtocol", "StatusServer", "Storage", "StoreContract", "Waku", "WakuCrypto", grdb]),
        tests("ClusterPostgreSQL", ["Cluster", "Primitives", "Storage", "StorePostgreSQL", "WakuCrypto"]),
        tests("StorePostgreSQL", ["Storage", "StoreContract", "StoreSQLite", "WakuCrypto"]),
        tests("Delivery", ["Gorush", "PushTypes", "Storage", "StoreSQLite", "Waku", "WakuCrypto"]),
        tests(
            "StatusServer",
            ["Delivery", "PushTypes", "StatusProtocol", "StatusRules", "Storage", "StoreSQLite", "Waku", "WakuCrypto", grdb]),
        tests("Prometheus", [metrics]),
        tests("Doctor", ["AdminProtocol", "Delivery", "Gorush", "HealthChecks", "NwakuRelay", "Storage", "Waku"]),
        tests("StatusPage", ["NodeMetrics", "Primitives", "Waku"]),
        tests("NodeMetrics", ["Prometheus", "StatusServer", "Waku"]),
        tests("CurlClient", [hummingbird]),
        tests("Gorush", ["CurlClient", "PushTypes", "StatusProtocol", "StatusServer", "Waku", "WakuCrypto", hummingbird]),
        tests("NwakuRelay", ["LoopbackRelay", "Primitives", "Waku", "WakuCrypto", "CurlClient", hummingbird, lifecycle, logging, nio]),
        tests("HTTPService", [hummingbird, httpTypes, logging, nio, nioEmbedded, nioHTTPTypes]),
        tests("LoopbackRelay", ["Primitives", "Waku", "WakuCrypto", hummingbird]),
        tests(
            "StatusV01Server",
            [
                "Delivery", "Gorush", "PushNode", "PushTypes", "StatusProtocol", "StatusRules", "Storage", "StoreSQLite", "Waku",
                "WakuCrypto",
                grdb,
            ]),
        tests(
            "PushNode",
            [
                "Cluster", "CurlClient", "Delivery", "Gorush", "HealthChecks", "LoopbackRelay", "NodeAssembly", "NodeMetrics", "NwakuRelay",
                "Prometheus", "PushClient", "PushTypes", "StatusRules", "StatusServer", "StatusV01Server", "Storage", "StorePostgreSQL",
                "StoreSQLite", "StatusProtocol",
                "Waku", "WakuCrypto", grdb, hummingbird, logging, lifecycle,
            ]),
        tests(
            "PushBench",
            ["Delivery", "NodeAssembly", "PushNode", "PushTypes", "StatusProtocol", "StatusServer", "Storage", "StorePostgreSQL", "Waku"]),
        tests("StatusGoImport", ["PushTypes", "StatusProtocol", "StatusServer", "Waku", "WakuCrypto"]),
        tests("Systemd"),
        tests("PushClient", ["Primitives", "PushTypes", "StatusProtocol", "Waku", "WakuCrypto"]),
        tests("PushClientSQLite", ["PushClient", "PushTypes", "StatusProtocol", "Waku", "WakuCrypto", grdb]),
        tests(
            "WakuPushCommands",
            [
                "Cluster", "ClusterPostgreSQL", "CurlClient", "Delivery", "Gorush", "LibP2P", "LoopbackRelay", "NodeAssembly", "PushClient",
                "PushClientSQLite", "PushNode",
                "Primitives", "PushTypes", "SessionProtocol", "SessionRules", "SessionServer", "Sodium", "StatusProtocol", "StatusRules",
                "StatusServer", "StatusV01Server", "Storage", "StorePostgreSQL", "StoreSQLite", "Waku",
                "WakuCrypto", "WakuP2P", grdb, arguments, logging,
            ]),
        // Depends on the program so that it is built: it is run, not imported.
        .testTarget(
            name: "CommandLineTests",
            dependencies: [
                "waku-push", "TestSupport", "Delivery", "NodeAssembly", "PushClient", "PushTypes", "SessionProtocol", "StatusServer",
                "Storage", "StoreSQLite",
                "NwakuRelay", "LibP2P", "StatusProtocol", "Waku", "WakuCrypto",
                "WakuP2P", "CurlClient", grdb, logging,
            ],
            path: "Tests/waku-pushTests", swiftSettings: testing),
    ]
)
