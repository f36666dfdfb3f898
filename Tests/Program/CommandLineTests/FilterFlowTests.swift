import LibP2P
import Logging
import NIOCore
import Synchronization
import TestSupport
import Testing
import Core
import Waku

@testable import WakuP2P
@testable import WakuWireServer

/// The daemon as a client of a filter node, through which it receives and publishes.
@Suite(.timeLimit(.minutes(5)))
struct FilterFlowTests {
    @Test func registersQueriesAndNotifiesThroughAFilterNode() async throws {
        let filterNode = try await FilterNode()
        let node = try OperatedNode()
        let daemon = try await node.start("--relay", filterNode.address, "--attach", "filter")

        let common = ["--relay", filterNode.address, "--server", node.server.publicKey, "--timeout", "60s"]
        let registered = try await node.recorded(
            ["client", "register"] + common + [
                "--identity", node.bob.path, "--device-token", OperatedNode.deviceToken, "--access-token", OperatedNode.accessToken,
                "--apn-topic", "im.status.ethereum", "--installation", "bobs-phone",
            ])
        #expect(registered.status == 0, "\(registered.errors)")
        // The registrant's topics are subscribed once it has registered.
        try await eventually {
            let queried = try await node.recorded(["client", "query"] + common + ["--registrant", node.bob.publicKey])
            return queried.rows.last == ["bobs-phone", "1", "yes"]
        }
        try await eventually {
            let notified = try await node.recorded(
                ["client", "notify"] + common + ["--registrant", node.bob.publicKey, "--message-id", "c0ffee"])
            return notified.status == 0
        }
        #expect(node.gorush.requests.count { $0.head.hasPrefix("POST") } == 1)
        #expect(filterNode.pushedCount > 0 && filterNode.lightpushCount > 0)
        // It gossips with no peer: the clients that did have exited.
        try await eventually { filterNode.gossipPeerCount == 0 }
        #expect(try await node.admin("peers").rows.last?.prefix(3) == [filterNode.peerID, "us", "filter"])
        let doctor = try await run(
            "doctor", "--identity", node.server.path, "--gorush", node.gorush.url, "--relay", filterNode.address, "--data", node.data)
        #expect(doctor.output.contains(/\nrelay +ok .*connected, and it accepted this node's topics\n/), "\(doctor.output)")
        #expect(node.leaks.isEmpty)
        let ended = await daemon.stop()
        #expect(ended.status == 0, "\(ended.errors.suffix(4_000))")
        await filterNode.close()
    }

    /// The clients' half: they get answers by filter, publish by lightpush, and find advertisements in the store. The daemon gossips.
    @Test func clientsOfAFilterNodeRegisterDiscoverAndNotify() async throws {
        let filterNode = try await FilterNode()
        let node = try OperatedNode()
        let daemon = try await node.start("--relay", filterNode.address, "--status-v0.1")
        func client(_ arguments: [String], _ name: String) async throws -> Ended {
            try await node.recorded(
                ["client"] + arguments + [
                    "--state", node.folder.path + "/" + name, "--relay", filterNode.address, "--attach", "filter", "--timeout", "60s",
                ])
        }
        struct Status: Decodable { let publicKey: String }
        for (index, version) in [[], ["v0.1"]].enumerated() {
            let (bob, alice) = ("bob\(index)", "alice\(index)")
            let topic = version.isEmpty ? ["--apn-topic", "im.status.ethereum"] : []
            let registered = try await client(
                version + ["register", "--server", node.server.publicKey, "--device-token", OperatedNode.deviceToken] + topic, bob)
            #expect(registered.rows.last == [node.server.publicKey, "registered", "1"], "\(registered.errors)")
            let status: Status = try await run(["client", "status", "--state", node.folder.path + "/" + bob, "--json"]).json()
            // On a slow machine gorush's first answer may take longer than the server waits for it.
            try await eventually {
                let notified = try await client(version + ["notify", status.publicKey, "--message-id", "c0ffee0\(index)"], alice)
                #expect(notified.status == 0 || notified.status == 69, "\(notified.errors)")
                return notified.status == 0
            }
            #expect(node.gorush.requests.count { $0.head.hasPrefix("POST") } == index + 1)
            #expect(try await client(version + ["unregister"], bob).status == 0)
        }
        #expect(filterNode.pushedCount >= 6 && filterNode.lightpushCount >= 6)
        #expect(await daemon.stop().status == 0)
        #expect(node.leaks.isEmpty)
        await filterNode.close()
    }

    /// Messages are answered even if the filter node has forgotten the daemon: the daemon detects it within seconds, and queries the store.
    @Test func aFilterNodeThatForgetsItsClientLosesNoRegistration() async throws {
        let filterNode = try await FilterNode()
        let node = try OperatedNode()
        let daemon = try await node.start("--relay", filterNode.address, "--attach", "filter")
        try await eventually { filterNode.isSubscribed }
        for round in 1...2 {
            filterNode.forget()
            try await withThrowingTaskGroup(of: Ended.self) { group in
                for device in 1...3 {
                    group.addTask {
                        try await node.recorded([
                            "client", "register", "--relay", filterNode.address, "--server", node.server.publicKey, "--timeout", "60s",
                            "--identity", node.bob.path, "--device-token", OperatedNode.deviceToken, "--access-token",
                            OperatedNode.accessToken, "--apn-topic", "im.status.ethereum", "--installation", "phone-\(round)-\(device)",
                        ])
                    }
                }
                for try await registered in group { #expect(registered.status == 0, "\(registered.errors)") }
            }
            #expect(filterNode.forgottenPingCount >= round)
        }
        let ended = await daemon.stop()
        #expect(ended.status == 0, "\(ended.errors.suffix(4_000))")
        #expect(ended.errors.contains("filter node dropped the subscription"))
        #expect(node.leaks.isEmpty)
        await filterNode.close()
    }
}

/// A relay that serves filter, lightpush and store, for one client, whose subscription it can forget.
private final class FilterNode: Sendable {
    private struct State {
        var client: PeerID?
        var topics: Set<ContentTopic> = []
        var kept: [ReceivedMessage] = []
        var pushedCount = 0
        var lightpushCount = 0
        var forgottenPingCount = 0

        mutating func code(for request: FilterSubscribeRequest, of peer: PeerID) -> UInt32 {
            switch request.kind {
            case .ping:
                if topics.isEmpty { forgottenPingCount += 1 }
                return topics.isEmpty ? 404 : 200
            case .subscribe: (client, topics) = (peer, topics.union(request.contentTopics))
            case .unsubscribe: topics.subtract(request.contentTopics)
            case .unsubscribeAll: topics = []
            }
            return 200
        }

        func answer(_ request: StoreRequest) -> StoreResponse {
            let start = request.startTime ?? Timestamp(rawValue: 0)
            let found = kept.filter { message in
                request.hashes.isEmpty
                    ? request.contentTopics.contains(message.message.contentTopic) && message.message.timestamp >= start
                    : request.hashes.contains(message.hash)
            }
            return StoreResponse(
                requestID: request.requestID, status: WakuStatus(code: 200),
                entries: found.prefix(100).map { .init(hash: $0.hash, message: request.includesMessages ? $0 : nil) })
        }
    }

    let address: String
    private let relay: P2PRelay
    private let running: Task<Void, Never>
    private let state: SharedState

    private final class SharedState: Sendable {
        let value = Mutex(State())
    }

    var peerID: String { "\(relay.host.peerID)" }
    var gossipPeerCount: Int { relay.gossipPeers.count }
    var pushedCount: Int { state.value.withLock(\.pushedCount) }
    var lightpushCount: Int { state.value.withLock(\.lightpushCount) }
    var isSubscribed: Bool { state.value.withLock { !$0.topics.isEmpty } }
    /// Pings that were answered 404.
    var forgottenPingCount: Int { state.value.withLock(\.forgottenPingCount) }

    /// Forgets its client silently.
    func forget() { state.value.withLock { $0.topics = [] } }

    init() async throws {
        let relay = P2PRelay(
            configuration: .init(key: .generate(), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")]),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let state = SharedState()
        (self.relay, self.state) = (relay, state)
        relay.host.serve(WakuProtocol.filterSubscribe) { stream in
            var reader = MessageReader(stream, limit: 1 << 16)
            guard let bytes = try await reader.next() else { return }
            let request = try FilterSubscribeRequest(parsing: Array(bytes.readableBytesView))
            let code = state.value.withLock { $0.code(for: request, of: stream.peer) }
            let response = StatusResponse(requestID: request.requestID, status: WakuStatus(code: code))
            try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
        }
        relay.host.serve(WakuProtocol.store) { stream in
            var reader = MessageReader(stream, limit: 1 << 16)
            guard let bytes = try await reader.next() else { return }
            let request = try StoreRequest(parsing: Array(bytes.readableBytesView))
            let response = state.value.withLock { $0.answer(request) }
            try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
        }
        relay.host.serve(WakuProtocol.lightpush) { [weak relay] stream in
            var reader = MessageReader(stream, limit: 1 << 18)
            guard let bytes = try await reader.next() else { return }
            let request = try LightpushRequest(parsing: Array(bytes.readableBytesView))
            try await relay?.publish(request.message, on: .statusDefault)
            state.value.withLock { state in
                state.lightpushCount += 1
                state.kept.append(ReceivedMessage(message: request.message, pubsubTopic: .statusDefault))
            }
            let response = StatusResponse(requestID: request.requestID, status: WakuStatus(code: 200), relayPeerCount: 1)
            try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
        }
        try await relay.listen()
        address = try #require(relay.listenAddresses.first).description
        running = Task {
            await relay.run { messages in
                for message in messages {
                    let client = state.value.withLock { state in
                        state.kept.append(message)
                        return state.topics.contains(message.message.contentTopic) ? state.client : nil
                    }
                    guard let client, let stream = try? await relay.host.openStream(to: client, [WakuProtocol.filterPush]) else { continue }
                    try? await stream.writeMessage(ByteBuffer(bytes: FilterPush(message: message).encoded()))
                    stream.close()
                    state.value.withLock { $0.pushedCount += 1 }
                }
            }
        }
    }

    func close() async {
        running.cancel()
        await running.value
        await relay.close()
    }
}
