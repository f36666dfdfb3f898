import Foundation
import LoopbackRelay
import LoopbackServer
import NodeAssembly
import Storage
import StorePostgreSQL
import TestSupport
import WakuCrypto

/// The daemon's environment, which outlives it: a network with one node that serves a Waku node's REST API, a gorush stand-in, the key
/// file, and a folder.
struct Stage: Sendable {
    let identity = PrivateKey.generate()
    let network: LoopbackNetwork
    let gorush: GorushStandIn
    let folder: TemporaryFolder
    let relayPort: Int
    let gorushPort: Int
    /// The store of the daemons.
    let location: StoreLocation
    /// Whether the store may be unavailable: then INTERNAL_ERROR promises nothing.
    let mayFailToStore: Bool
    private let program: URL?

    var dataPath: String { folder.path + "/data" }
    var keyPath: String { folder.path + "/id.key" }
    var server: PublicKey { identity.publicKey }

    private init(
        network: LoopbackNetwork, gorush: GorushStandIn, relayPort: Int, gorushPort: Int, binary: String?, location: StoreLocation,
        mayFailToStore: Bool
    ) throws {
        self.network = network
        self.location = location
        self.mayFailToStore = mayFailToStore
        self.gorush = gorush
        self.relayPort = relayPort
        self.gorushPort = gorushPort
        folder = try TemporaryFolder()
        if let binary {
            guard FileManager.default.isExecutableFile(atPath: binary) else { throw Failed("there is no program at \(binary)") }
            program = URL(fileURLWithPath: binary)
        } else {
            program = nil
        }
        let key = identity.withBytes { hexString($0) } + "\n"
        guard FileManager.default.createFile(atPath: keyPath, contents: Data(key.utf8), attributes: [.posixPermissions: 0o600]) else {
            throw Failed("\(keyPath) can't be made")
        }
    }

    /// Creates the environment, runs `body` in it, and removes it.
    ///
    /// - Parameter location: an empty store.
    static func with(
        network: LoopbackNetwork, gorush: GorushStandIn, binary: String?,
        location: StoreLocation = .dataFolder, mayFailToStore: Bool = false,
        _ body: @escaping @Sendable (Stage) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            let (relayPorts, relayBound) = AsyncStream.makeStream(of: Int.self)
            let (gorushPorts, gorushBound) = AsyncStream.makeStream(of: Int.self)
            group.addTask {
                try await LoopbackServer(network: network, port: 0).run { relayBound.yield($0) }
                return false
            }
            group.addTask {
                try await gorush.run { gorushBound.yield($0) }
                return false
            }
            var ports: [Int] = []
            for stream in [relayPorts, gorushPorts] {
                for await port in stream {
                    ports.append(port)
                    break
                }
            }
            let stage = try Stage(
                network: network, gorush: gorush, relayPort: ports[0], gorushPort: ports[1], binary: binary, location: location,
                mayFailToStore: mayFailToStore)
            group.addTask {
                try await body(stage)
                return true
            }
            for try await isDone in group where isDone { break }
            group.cancelAll()
        }
    }

    /// - Parameters:
    ///   - number: identifies the daemon in its posts to gorush.
    ///   - arguments: the store's arguments are added unless present.
    ///   - relayPort: the port of another relay node.
    func start(
        _ number: Int, data: String? = nil, arguments: [String] = [], limit: Duration = .seconds(600), relayPort: Int? = nil
    ) throws -> DaemonProcess {
        let http = try freePort()
        var arguments = arguments
        if case .postgreSQL(let address) = location, !arguments.contains("--store") {
            arguments += ["--store", address.connectionString]
        }
        let process = try ChildProcess(
            [
                "serve", "--identity", keyPath, "--data", data ?? dataPath, "--relay", "http://127.0.0.1:\(relayPort ?? self.relayPort)",
                "--gorush", "http://127.0.0.1:\(gorushPort)/\(number)", "--poll-interval", "20ms", "--http", "127.0.0.1:\(http)",
            ] + arguments, program: program, limit: limit)
        return DaemonProcess(number: number, process: process, httpURL: "http://127.0.0.1:\(http)")
    }

    /// Runs an admin command beside the daemon. Returns its exit code and what it printed.
    func run(_ arguments: [String]) async throws -> (status: Int32, output: String) {
        let command = try ChildProcess(arguments + ["--identity", keyPath, "--data", dataPath], program: program)
        let status = await command.status
        return (status, command.output + command.errors)
    }

    /// Opens the database while the daemon runs.
    func store(at path: String? = nil) throws -> any Store {
        try NodeAssembly.existingStore(at: path == nil ? location : .dataFolder, in: path ?? dataPath, of: identity)
    }

    /// Opens the database of a killed daemon, after the server ended its open transactions.
    func leftStore() throws -> any Store {
        try NodeAssembly.store(at: location, in: dataPath, of: identity)
    }
}
