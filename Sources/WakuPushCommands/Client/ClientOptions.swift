import ArgumentParser
import CurlClient
import Foundation
import LibP2P
import Logging
import NwakuRelay
import PushClient
import StatusProtocol
import Waku
import WakuCrypto
import WakuP2P

/// What every client command takes.
struct ClientOptions: ParsableArguments {
    @Option(help: "A Waku node, its REST API's URL or its multiaddr.")
    var relay: String = Environment.string("relay") ?? "http://127.0.0.1:8645"

    @Option(help: "The push server's public key, full or compressed.")
    var server: PublicKeyArgument

    @Option(help: "The pubsub topic to publish on.")
    var pubsubTopic: String = Environment.string("pubsub-topic") ?? PubsubTopic.statusDefault.rawValue

    @Option(help: "How long to wait for the answer.")
    var timeout: DurationArgument = Environment.value("timeout", DurationArgument("10s", .seconds(10)))

    @Flag(help: "Print JSON.")
    var json = false

    /// Runs `body` with a client that is attached.
    func withClient<R: Sendable>(_ identity: PrivateKey, _ body: @Sendable @escaping (StatusPushClient) async throws -> R) async throws -> R
    {
        let topic = PubsubTopic(rawValue: pubsubTopic)
        let relay = try attachment(to: topic)
        let client = StatusPushClient(identity: identity, relay: relay, pubsubTopic: topic)
        return try await withThrowingTaskGroup(of: R?.self) { group in
            group.addTask {
                await client.run()
                return nil
            }
            group.addTask {
                try await waitUntilAttached(relay)
                return try await body(client)
            }
            defer { group.cancelAll() }
            for try await result in group {
                if let result { return result }
            }
            throw CommandFailure(.unavailable, "the relay at \(self.relay) was left before there was an answer")
        }
    }

    private func attachment(to topic: PubsubTopic) throws -> any Relay {
        let logger = Logger(label: "waku-push") { _ in LineLogHandler(format: .text, level: .warning) }
        guard relay.hasPrefix("/") else {
            return NwakuStoreWatch(
                configuration: NwakuStoreWatch.Configuration(
                    address: try NodeAddress(relay), pubsubTopics: [topic], startTime: .now() - .seconds(2)),
                client: CurlClient(), logger: logger)
        }
        return P2PRelay(
            configuration: P2PRelay.Configuration(key: .generate(), peers: [try RelayAttachment.peer(relay)], pubsubTopics: [topic]),
            logger: logger)
    }

    /// Who watches a store is as soon as it is asked. Who gossips is once there is a mesh.
    private func waitUntilAttached(_ relay: any Relay) async throws {
        guard relay is P2PRelay else { return }
        let deadline = ContinuousClock.now + timeout.duration
        while relay.state != .attached {
            guard ContinuousClock.now < deadline else {
                throw CommandFailure(
                    .unavailable, "the node at \(self.relay) does not gossip with this client: is it there, and on the topic?")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}

/// Whose device it is. Queries and requests work without: a key for the occasion is made then.
struct ClientIdentityOptions: ParsableArguments {
    @Option(help: "The client's key file.")
    var identity: String?

    private var identityFile: String? { identity ?? Environment.string("client-identity") }

    func required() throws(CommandFailure) -> PrivateKey {
        guard let identityFile else {
            throw CommandFailure(.usage, "--identity is missing: make a key for the client with waku-push identity new --out client.key")
        }
        return try IdentityFile.read(identityFile)
    }

    func orEphemeral() throws(CommandFailure) -> PrivateKey {
        guard let identityFile else { return .generate() }
        return try IdentityFile.read(identityFile)
    }
}
