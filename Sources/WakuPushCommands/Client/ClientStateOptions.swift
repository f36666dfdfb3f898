import ArgumentParser
import CurlClient
import Foundation
import LibP2P
import Logging
import NwakuRelay
import PushClient
import PushClientSQLite
import Synchronization
import Waku
import WakuCrypto
import WakuP2P

/// A client that remembers: its key and its state are in a folder.
struct ClientStateOptions: ParsableArguments {
    @Option(help: "The folder with the client's key and all that it remembers. Made if it is missing.")
    var state: String

    @Option(
        name: .customLong("relay"),
        help: "A Waku node, its REST API's URL or its multiaddr; repeat it for more. [default: http://127.0.0.1:8645]")
    var relays: [String] = []

    @Option(help: "The pubsub topic of the network.")
    var pubsubTopic: String = Environment.string("pubsub-topic") ?? PubsubTopic.statusDefault.rawValue

    @Option(help: "The most recently active devices of a registrant that are notified, from 1 to 5.")
    var devices = 3

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard (1...5).contains(devices) else { throw ValidationError("--devices is from 1 to 5") }
    }

    /// The client as it was left.
    ///
    /// - Throws: ``CommandFailure``
    func open(_ relays: [any Relay]) async throws -> StatusPushClient {
        var configuration = StatusPushClient.Configuration()
        configuration.pubsubTopic = PubsubTopic(rawValue: pubsubTopic)
        configuration.deviceLimit = devices
        do {
            try FileManager.default.createDirectory(
                atPath: state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let identity = try identity()
            let store = try SQLiteClientStore(folder: state, identity: identity)
            return try await StatusPushClient.open(identity: identity, relays: relays, store: store, configuration: configuration)
        } catch let error as ClientStoreError {
            throw CommandFailure(error)
        } catch let error as CommandFailure {
            throw error
        } catch {
            throw CommandFailure(.cannotCreate, "folder \(state) can't be made: make it, or choose another by --state")
        }
    }

    private func identity() throws(CommandFailure) -> PrivateKey {
        let file = state + "/identity.key"
        if FileManager.default.fileExists(atPath: file) { return try IdentityFile.read(file) }
        let key = PrivateKey.generate()
        try IdentityFile.write(key, to: file)
        return key
    }

    /// Runs `body` with the client, which is attached meanwhile.
    func withClient<R: Sendable>(_ body: @Sendable @escaping (StatusPushClient) async throws -> R) async throws -> R {
        let client = try await open(attachments())
        return try await withThrowingTaskGroup(of: R?.self) { group in
            group.addTask {
                await client.run()
                return nil
            }
            group.addTask { try await body(client) }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CommandFailure(.unavailable, "the relay was left before there was an answer")
        }
    }

    private func attachments() throws -> [any Relay] {
        let topic = PubsubTopic(rawValue: pubsubTopic)
        let logger = Logger(label: "waku-push") { _ in LineLogHandler(format: .text, level: .warning) }
        let names = relays.isEmpty ? [Environment.string("relay") ?? "http://127.0.0.1:8645"] : relays
        var attachments: [any Relay] = try names.filter { !$0.hasPrefix("/") }.map { name in
            NwakuStoreWatch(
                configuration: NwakuStoreWatch.Configuration(
                    address: try NodeAddress(name), pubsubTopics: [topic], startTime: .now() - .seconds(2)),
                client: CurlClient(), logger: logger)
        }
        let peers = try names.filter { $0.hasPrefix("/") }.map(RelayAttachment.peer)
        if !peers.isEmpty {
            attachments.append(
                P2PRelay(configuration: P2PRelay.Configuration(key: .generate(), peers: peers, pubsubTopics: [topic]), logger: logger))
        }
        return attachments
    }
}

extension CommandFailure {
    init(_ error: ClientStoreError) {
        let code: Code =
            switch error.code {
            case .locked, .unavailable: .unavailable
            case .permission: .permission
            case .newer, .otherIdentity, .damaged: .data
            }
        self.init(code, error.message)
    }
}
