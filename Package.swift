// swift-tools-version: 6.2
import PackageDescription

// The table of contents: a room is a folder of Sources, its targets are the folders in it, and Tests mirrors it. A room imports itself and rooms
// above it in this file; Deploy/dev/check-rooms says so.

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

/// Of tests. Not optimized in a release build either: that would take longer than running them. No product contains them, so packages that
/// depend on this one do not meet the unsafe flag.
let testing: [SwiftSetting] = strict + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

/// Of packages that only the node needs: whoever depends on the client's products with `traits: []` does not download them.
let server: TargetDependencyCondition? = .when(traits: ["Server"])

let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird", condition: server)
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird", condition: server)
let nioHTTPTypes: Target.Dependency = .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: server)
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types", condition: server)
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioSockets: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioHTTPTypesHTTP1: Target.Dependency = .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: server)
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: server)
let signals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: server)
let deque: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let heap: Target.Dependency = .product(name: "HeapModule", package: "swift-collections")
let yaml: Target.Dependency = .product(name: "Yams", package: "Yams", condition: server)
let histogram: Target.Dependency = .product(name: "Histogram", package: "hdrhistogram-swift", condition: server)
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser", condition: server)

/// Set by Deploy/dev/fuzz: then FuzzTests is a program that libFuzzer drives, in place of tests. Its `main` is libFuzzer's, which nothing else
/// links. `coverage`: its counters begin after the seeds were made.
let fuzzes = Context.environment["WAKU_PUSH_FUZZ"]

/// Set by Deploy/release; empty in local builds.
let commit = (Context.environment["WAKU_PUSH_COMMIT"] ?? "").filter(\.isHexDigit)

let package = Package(
    name: "waku-push",
    products: [
        .executable(name: "waku-push", targets: ["waku-push"]),
        .executable(name: "waku-push-bench", targets: ["waku-push-bench"]),
        .library(name: "PushClient", targets: ["PushClient"]),
        .library(name: "PushClientSQLite", targets: ["PushClientSQLite"]),
        .library(name: "PushReceiver", targets: ["PushReceiver"]),
        .library(name: "PushReceiverHTTP", targets: ["PushReceiverHTTP"]),
        .library(name: "Core", targets: ["Core"]),
        .library(name: "WakuCrypto", targets: ["WakuCrypto"]),
        .library(name: "Waku", targets: ["Waku"]),
        .library(name: "StatusProtocol", targets: ["StatusProtocol"]),
        .library(name: "GossipSub", targets: ["GossipSub"]),
        .library(name: "WakuP2P", targets: ["WakuP2P"]),
        .library(name: "NwakuRelay", targets: ["NwakuRelay"]),
        .library(name: "LoopbackRelay", targets: ["LoopbackRelay"]),
        .library(name: "LibP2P", targets: ["LibP2P"]),
        // For protocols of other packages: what a protocol implements and uses, and the program that runs it.
        .library(name: "WakuPushNode", targets: ["WakuPushNode"]),
    ],
    traits: [
        .trait(
            name: "Server", description: "The node, its commands, and PushReceiverHTTP; the other products of a client need no HTTP server."
        ),
        .default(enabledTraits: ["Server"]),
    ],
    dependencies: [
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-collections.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.34.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"),
    ]
)

/// The targets of Sources/ROOM.
func room(_ room: String, _ targets: [Target]) -> [Target] {
    for target in targets { target.path = "Sources/\(room)/\(target.name)" }
    return targets
}

/// The test targets of Tests/ROOM.
func tests(of room: String, _ targets: [Target]) -> [Target] {
    for target in targets { target.path = "Tests/\(room)/\(target.name)" }
    return targets
}

func system(_ name: String, pkgConfig: String, apt package: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// A target that other targets import. The products list those that other packages may import.
func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.byName(name: name), "TestSupport"] + dependencies, swiftSettings: testing)
}

// MARK: - C: system libraries, those that are opened at run time (CPostgres, CSodium), and generated messages

package.targets += room(
    "C",
    [
        system("COpenSSL", pkgConfig: "libcrypto", apt: "libssl-dev"),
        system("CSecp256k1", pkgConfig: "libsecp256k1", apt: "libsecp256k1-dev"),
        system("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        system("CTLS", pkgConfig: "libssl", apt: "libssl-dev"),
        system("CProtobufC", pkgConfig: "libprotobuf-c", apt: "libprotobuf-c-dev"),
        .target(name: "CPushMessages", dependencies: ["CProtobufC"]),
        .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(name: "CPostgres"),
        .target(name: "CSodium"),
        .target(name: "CVersion", cSettings: [.define("WAKU_PUSH_COMMIT", to: commit)]),
    ])

// MARK: - Core: small types, time, cryptography, encodings

package.targets += room(
    "Core",
    [
        library("Core", ["WakuCrypto"]),
        library("WakuCrypto", ["COpenSSL", "CSecp256k1"]),
    ])

// MARK: - Network: Waku messages and relays, libp2p, HTTP

package.targets += room(
    "Network",
    [
        library("CurlClient", ["CCurl", "Core"]),
        library("GossipSub", ["Core", "WakuCrypto", deque]),
        library(
            "HTTPService",
            ["CTLS", "Core", "NIOSupport", deque, httpTypes, hummingbird, hummingbirdCore, lifecycle, logging, nio, nioHTTP1, nioHTTPTypes]),
        library("LibP2P", ["Core", "NIOSupport", "WakuCrypto", logging, nio, nioSockets]),
        library("LoopbackRelay", ["Core", "Waku"]),
        library("LoopbackServer", ["Core", "HTTPService", "LoopbackRelay", "NIOSupport", "Waku", "WakuCrypto", hummingbird, logging, nio]),
        library("NIOSupport", ["Core", logging, nio]),
        library("NwakuRelay", ["Core", "CurlClient", "Waku", "WakuCrypto", logging]),
        library("Waku", ["CPushMessages", "Core", "WakuCrypto"]),
        library("WakuP2P", ["Core", "GossipSub", "LibP2P", "NIOSupport", "Waku", "WakuCrypto", logging, nio, nioSockets]),
    ])

// MARK: - Store: the surface as data, and its two engines

package.targets += room(
    "Store",
    [
        library("Storage", ["Core", "WakuCrypto", deque]),
        library("StorePostgreSQL", ["CPostgres", "Core", "Storage", "WakuCrypto"]),
        library("StoreSQLite", ["CSQLite", "Storage", "WakuCrypto", grdb, sqlite]),
    ])

// MARK: - Node: what protocols see, delivery to gorush, metrics, and the node that runs them

package.targets += room(
    "Node",
    [
        library("Delivery", ["Core", "CurlClient", "NodeMetrics", "Storage", "Waku", "WakuCrypto", deque, logging]),
        library("RateLimits", ["Core", "WakuCrypto", deque, heap]),
        library("NodeAPI", ["Core", "Delivery", "NodeMetrics", "RateLimits", "Storage", "Waku", "WakuCrypto", logging]),
        library("NodeMetrics", ["Core", "CurlClient", "RateLimits", "Waku", deque, logging]),
        library(
            "PushNode",
            [
                "Core", "Delivery", "HTTPService", "NIOSupport", "NodeAPI", "NodeMetrics", "RateLimits", "Storage", "Waku", "WakuCrypto",
                deque, httpTypes, hummingbird, lifecycle, logging, nio,
            ]),
    ])

// MARK: - Cluster: several nodes on one database

package.targets += room(
    "Cluster",
    [
        library(
            "Cluster", ["Core", "Delivery", "NodeAPI", "NodeMetrics", "Storage", "StorePostgreSQL", "Waku", "WakuCrypto", logging])
    ])

// MARK: - Status: protocol, rules and server, version 0.1 beside it

package.targets += room(
    "Status",
    [
        library("StatusProtocol", ["CPushMessages", "Core", "Waku", "WakuCrypto"]),
        library("StatusRules", ["Core", "NodeAPI", "NodeMetrics", "RateLimits", "StatusProtocol", "Waku", "WakuCrypto"]),
        library(
            "StatusServer",
            [
                "Core", "Delivery", "NodeAPI", "NodeMetrics", "RateLimits", "StatusProtocol", "StatusRules", "Storage", "Waku",
                "WakuCrypto",
                logging,
            ]),
        library(
            "StatusV01Server",
            [
                "Core", "Delivery", "NodeAPI", "NodeMetrics", "RateLimits", "StatusProtocol", "StatusRules", "Storage", "Waku",
                "WakuCrypto",
                logging,
            ]),
    ])

// MARK: - Session: protocol, storage servers, server

package.targets += room(
    "Session",
    [
        library("SessionProtocol", ["CSodium", "Core", "WakuCrypto", deque, logging, nio, nioSockets]),
        library(
            "SessionServer",
            [
                "Core", "Delivery", "HTTPService", "NIOSupport", "NodeAPI", "NodeMetrics", "RateLimits", "SessionProtocol", "Storage",
                "Waku", "WakuCrypto", deque, httpTypes, hummingbird, hummingbirdCore, logging, nio, nioSockets,
            ]),
        library("SessionStandIns", ["Core", "SessionProtocol", "WakuCrypto", nio, nioSockets]),
    ])

// MARK: - Client: the client's half of Status, and the receiver's of Web Push

package.targets += room(
    "Client",
    [
        library("PushClient", ["Core", "StatusProtocol", "Waku", "WakuCrypto"]),
        library("PushClientSQLite", ["PushClient", "WakuCrypto", grdb]),
        library("PushReceiver", ["Core", "WakuCrypto"]),
        library("PushReceiverHTTP", ["Core", "HTTPService", "PushReceiver", httpTypes, hummingbird, logging, nio]),
    ])

// MARK: - Program: operations, import from status-go, the composition root, commands

package.targets += room(
    "Program",
    [
        library(
            "NodeAssembly",
            [
                "Cluster", "Core", "Delivery", "NodeAPI", "NodeMetrics", "PushNode", "RateLimits", "SessionServer",
                "StatusProtocol", "StatusRules", "StatusServer", "StatusV01Server", "Storage", "StorePostgreSQL", "StoreSQLite", "Waku",
                "WakuCrypto", logging,
            ]),
        library(
            "PushBench",
            [
                "CCurl", "COpenSSL", "CPostgres", "CPushMessages", "CSecp256k1", "CTLS", "Cluster", "Core", "CurlClient",
                "Delivery", "HTTPService", "LibP2P", "LoopbackRelay", "LoopbackServer", "NodeAPI", "NodeAssembly",
                "NodeMetrics", "NwakuRelay",
                "PushNode", "RateLimits", "SessionProtocol", "SessionServer", "SessionStandIns", "StatusProtocol",
                "StatusServer", "StatusV01Server", "Storage", "StorePostgreSQL", "StoreSQLite", "Waku", "WakuCrypto",
                "WakuP2P", "WakuPushCommands", arguments, histogram, lifecycle, logging, nio, signals, sqlite,
            ]),
        library("StatusGoImport", ["COpenSSL", "CSQLite", "Core", "StatusProtocol", "StatusServer", "WakuCrypto", grdb, sqlite]),
        library(
            "WakuPushCommands",
            [
                "CVersion", "Cluster", "Core", "CurlClient", "Delivery", "HTTPService", "LibP2P", "LoopbackRelay",
                "LoopbackServer", "NIOSupport", "NodeAPI", "NodeAssembly", "NodeMetrics", "NwakuRelay", "PushClient", "PushClientSQLite",
                "PushNode", "PushReceiver", "PushReceiverHTTP", "RateLimits", "SessionProtocol", "SessionServer", "StatusGoImport",
                "StatusProtocol", "StatusRules", "StatusServer", "StatusV01Server", "Storage", "StorePostgreSQL", "StoreSQLite", "Waku",
                "WakuCrypto", "WakuP2P", arguments, hummingbird, lifecycle, logging, nio, signals, yaml,
            ]),
        library(
            "WakuPushNode",
            ["Core", "Delivery", "NodeAPI", "NodeMetrics", "RateLimits", "Storage", "Waku", "WakuCrypto", "WakuPushCommands"]),
        .executableTarget(name: "waku-push", dependencies: ["WakuPushCommands"], swiftSettings: strict),
        // Apart from the program that operators install.
        .executableTarget(name: "waku-push-bench", dependencies: ["PushBench"], swiftSettings: strict),
    ])

// MARK: - Tests

package.targets += [
    .target(name: "CFaultVFS", path: "Tests/CFaultVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
    .target(
        name: "TestSupport",
        dependencies: [
            "CFaultVFS", "Core", "Delivery", "NodeAPI", "NodeMetrics", "SessionProtocol", "SessionStandIns", "StatusProtocol",
            "StatusRules", "Storage", "Waku", "WakuCrypto", heap, logging,
        ],
        path: "Tests/TestSupport", resources: [.copy("Vectors")], swiftSettings: strict),
    // The server's side of Waku's messages, of which a node has the client's alone.
    .target(
        name: "WakuWireServer", dependencies: ["Core", "Waku", "WakuP2P"], path: "Tests/WakuWireServer", swiftSettings: testing),
    // The example of a protocol of another package: it sees what is public alone. Deploy/test --all also builds it as a package of its own.
    .target(
        name: "TopicPush", dependencies: ["WakuPushNode"], path: "Tests/Examples/topic-push/Sources/TopicPush", packageAccess: false,
        swiftSettings: strict),
    .executableTarget(
        name: "my-push", dependencies: ["TopicPush", "WakuPushNode"], path: "Tests/Examples/topic-push/Sources/my-push",
        packageAccess: false, swiftSettings: strict),
    // What every engine of the store must keep to.
    .target(
        name: "StoreContract",
        dependencies: [
            "Core", "Delivery", "NodeAPI", "NodeAssembly", "PushNode", "SessionProtocol", "SessionServer", "StatusProtocol",
            "StatusServer", "StatusV01Server", "Storage", "TestSupport", "Waku", "WakuCrypto",
        ],
        path: "Tests/StoreContract", swiftSettings: testing),
    // A model of an engine, for the simulation of the whole node.
    .target(name: "PostgreSQLModel", dependencies: ["Core", "Storage"], path: "Tests/PostgreSQLModel", swiftSettings: strict),
    // Runs waku-push as a process, which is built for itself.
    .executableTarget(
        name: "crash-test",
        dependencies: [
            "Core", "CurlClient", "Delivery", "HTTPService", "LoopbackRelay", "LoopbackServer", "NodeAssembly", "PushClient",
            "PushClientSQLite",
            "SessionProtocol", "SessionServer", "SessionStandIns", "StatusProtocol", "StatusRules", "StatusServer",
            "StatusV01Server", "Storage", "StorePostgreSQL", "TestSupport", "Waku", "WakuCrypto", arguments, grdb,
            hummingbird,
            logging, nio,
        ],
        path: "Tests/CrashTest", swiftSettings: strict),
    // Replaces functions of the C library, OpenSSL and Dispatch in the program that links it.
    .target(name: "CSimulation", path: "Tests/CSimulation"),
    .executableTarget(
        name: "node-simulation",
        dependencies: [
            "CSimulation", "Cluster", "Core", "Delivery", "NodeAPI", "NodeAssembly", "PostgreSQLModel", "PushNode",
            "SessionProtocol", "SessionServer", "SessionStandIns", "StatusProtocol", "StatusServer", "StatusV01Server", "Storage",
            "StoreSQLite", "TestSupport", "Waku", "WakuCrypto", arguments, grdb, heap, lifecycle, logging,
        ],
        path: "Tests/NodeSimulation", swiftSettings: strict),
]

// The decoders of foreign bytes, as tests or as a program.
let decoders: [Target.Dependency] = [
    "Cluster", "Core", "CurlClient", "Delivery", "GossipSub", "HTTPService", "LibP2P", "NwakuRelay", "PushReceiver", "SessionProtocol",
    "SessionServer", "StatusGoImport", "StatusProtocol", "StatusServer", "StatusV01Server", "Storage", "StorePostgreSQL",
    "StoreSQLite", "TestSupport", "Waku", "WakuCrypto", "WakuP2P", "WakuPushCommands", "WakuWireServer", grdb, httpTypes, nio,
    nioEmbedded, nioHTTP1, nioHTTPTypes, nioHTTPTypesHTTP1,
]
package.targets.append(
    fuzzes != nil
        ? .executableTarget(
            name: "fuzz", dependencies: decoders, path: "Tests/FuzzTests",
            exclude: ["Corpora", "FuzzTests.swift", "Mutator.swift", "unreachable.txt"],
            swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])] + (fuzzes == "coverage" ? [.define("COVERAGE")] : []))
        : .testTarget(
            name: "FuzzTests", dependencies: decoders, exclude: ["Corpora", "Fuzzer.swift", "unreachable.txt"], swiftSettings: testing))

// The programs of the client's tutorials. They are a package of their own for readers, which Deploy/test --all builds.
package.targets += ["bot", "listener", "sender", "share"].map { name in
    .executableTarget(
        name: "example-\(name)", dependencies: ["LibP2P", "PushClient", "PushClientSQLite", "WakuP2P", logging],
        path: "Tests/Examples/clients/Sources/\(name)", packageAccess: false, swiftSettings: strict)
}

package.targets += tests(
    of: "Core",
    [
        tests("Core", ["WakuCrypto"]),
        tests("WakuCrypto"),
    ])

package.targets += tests(
    of: "Network",
    [
        tests("CurlClient", ["Core"]),
        tests("GossipSub", ["Core", "WakuCrypto"]),
        tests("HTTPService", ["Core", httpTypes, hummingbird, logging, nio, nioEmbedded, nioHTTP1, nioHTTPTypes]),
        tests("LibP2P", ["Core", "WakuCrypto", nio, nioEmbedded, nioSockets]),
        tests("LoopbackRelay", ["Core", "Waku"]),
        tests("NIOSupport", [logging, nio, nioEmbedded]),
        tests(
            "NwakuRelay", ["Core", "CurlClient", "LoopbackRelay", "LoopbackServer", "Waku", hummingbird, lifecycle, logging, nio]),
        tests("WakuP2P", ["Core", "GossipSub", "LibP2P", "Waku", "WakuCrypto", "WakuWireServer", logging, nio, nioSockets]),
        tests("Waku", ["Core", "WakuCrypto"]),
    ])

package.targets += tests(
    of: "Store",
    [
        tests("StorePostgreSQL", ["Core", "PostgreSQLModel", "Storage", "StoreContract", "StoreSQLite", "WakuCrypto"]),
        tests(
            "StoreSQLite",
            [
                "Core", "Delivery", "StatusProtocol", "StatusServer", "Storage", "StoreContract", "Waku", "WakuCrypto", grdb,
            ]),
    ])

package.targets += tests(
    of: "Node",
    [
        tests(
            "Delivery",
            [
                "Core", "CurlClient", "NodeMetrics", "StatusProtocol", "StatusServer", "Storage", "StoreSQLite", "Waku", "WakuCrypto",
                logging,
            ]),
        tests("RateLimits", ["Core", "WakuCrypto"]),
        tests("NodeMetrics", ["Core"]),
        tests(
            "PushNode",
            [
                "Cluster", "Core", "CurlClient", "Delivery", "HTTPService", "LoopbackRelay", "LoopbackServer",
                "NodeAPI", "NodeAssembly",
                "NodeMetrics", "NwakuRelay", "PushClient", "RateLimits", "StatusProtocol", "StatusRules", "StatusServer", "StatusV01Server",
                "Storage", "StorePostgreSQL", "StoreSQLite", "TopicPush", "Waku", "WakuCrypto", "WakuPushNode", "my-push", grdb,
                hummingbird, lifecycle, logging,
            ]),
    ])

package.targets += tests(
    of: "Cluster",
    [
        tests("Cluster", ["Core", "Delivery", "NodeAPI", "Storage", "StorePostgreSQL", "WakuCrypto"])
    ])

package.targets += tests(
    of: "Status",
    [
        tests("StatusProtocol", ["Core", "Waku", "WakuCrypto"]),
        tests("StatusRules", ["Core", "NodeAPI", "NodeMetrics", "RateLimits", "StatusProtocol", "Waku", "WakuCrypto"]),
        tests(
            "StatusServer",
            [
                "Core", "Delivery", "NodeAPI", "NodeMetrics", "RateLimits", "StatusProtocol", "StatusRules", "Storage", "StoreSQLite",
                "Waku", "WakuCrypto",
                grdb,
            ]),
        tests(
            "StatusV01Server",
            [
                "Core", "Delivery", "NodeAPI", "NodeMetrics", "RateLimits", "StatusProtocol", "StatusRules", "Storage",
                "StoreSQLite", "Waku", "WakuCrypto",
            ]),
    ])

package.targets += tests(
    of: "Session",
    [
        tests("SessionProtocol", ["Core", "SessionStandIns", "WakuCrypto", nio]),
        tests(
            "SessionServer",
            [
                "Cluster", "Core", "CurlClient", "Delivery", "HTTPService", "NodeAPI", "NodeAssembly", "NodeMetrics", "PushNode",
                "RateLimits", "SessionProtocol", "SessionStandIns", "Storage", "StorePostgreSQL", "StoreSQLite", "Waku",
                "WakuCrypto", grdb, httpTypes, hummingbird, lifecycle, logging, nio, nioEmbedded, nioHTTPTypes,
            ]),
        tests("SessionStandIns", ["Core", "SessionProtocol", "WakuCrypto"]),
    ])

package.targets += tests(
    of: "Client",
    [
        tests("PushClientSQLite", ["Core", "PushClient", "StatusProtocol", "Waku", "WakuCrypto", grdb]),
        tests("PushClient", ["Core", "StatusProtocol", "Waku", "WakuCrypto"]),
        tests("PushReceiver", ["Core", "WakuCrypto"]),
        tests("PushReceiverHTTP", ["Core", "CurlClient", "Delivery", "HTTPService", "PushReceiver", "WakuCrypto"]),
    ])

package.targets += tests(
    of: "Program",
    [
        // Depends on the programs so that they are built: they are run, not imported.
        .testTarget(
            name: "CommandLineTests",
            dependencies: [
                "TestSupport", "TopicPush", "WakuPushNode", "my-push", "waku-push", "waku-push-bench", "example-bot", "example-listener",
                "example-sender", "example-share",
                "Core", "CurlClient", "LibP2P", "LoopbackRelay", "LoopbackServer", "NodeAssembly", "NwakuRelay", "PushClient",
                "StatusProtocol", "StatusServer", "Storage", "StoreContract", "StorePostgreSQL", "StoreSQLite", "Waku", "WakuCrypto",
                "WakuP2P", "WakuWireServer", grdb, logging, nio,
            ],
            swiftSettings: testing),
        tests(
            "PushBench",
            ["Core", "NodeAssembly", "NodeMetrics", "Storage", "StorePostgreSQL", "Waku", "WakuCrypto", "WakuPushCommands", arguments]),
        tests("StatusGoImport", ["Core", "StatusProtocol", "StatusServer", "WakuCrypto"]),
        tests(
            "WakuPushCommands",
            [
                "Cluster", "Core", "CurlClient", "Delivery", "HTTPService", "LibP2P", "LoopbackRelay", "LoopbackServer", "NodeAPI",
                "NodeAssembly", "NodeMetrics", "NwakuRelay", "PushClient", "PushNode", "RateLimits", "SessionProtocol",
                "SessionServer", "StatusProtocol",
                "StatusServer", "StatusV01Server", "Storage", "StorePostgreSQL", "StoreSQLite", "Waku", "WakuCrypto",
                "WakuP2P", arguments, grdb, logging,
            ]),
    ])
