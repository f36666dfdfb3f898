import LibP2P
import Logging
import NIOCore
import Synchronization
import TestSupport
import Testing
import Waku

@testable import WakuP2P

/// The daemon as a client of a filter node, by which alone it hears and answers.
@Suite(.timeLimit(.minutes(5)))
struct FilterFlowTests {
    @Test func theWholeJob() async throws {
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
        // The registrant's topics are asked for once there is one.
        try await wait {
            let queried = try await node.recorded(["client", "query"] + common + ["--registrant", node.bob.publicKey])
            return queried.rows.last == ["bobs-phone", "1", "yes"]
        }
        try await wait {
            let notified = try await node.recorded(
                ["client", "notify"] + common + ["--registrant", node.bob.publicKey, "--message-id", "c0ffee"])
            return notified.status == 0
        }
        #expect(node.gorush.requests.count { $0.head.hasPrefix("POST") } == 1)
        #expect(filterNode.pushedCount > 0 && filterNode.lightpushCount > 0)
        // It gossips with nobody: the clients that did are gone.
        try await wait { filterNode.gossipPeerCount == 0 }
        #expect(try await node.admin("peers").rows.last?.prefix(3) == [filterNode.peerID, "us", "filter"])
        let doctor = try await run(
            "doctor", "--identity", node.server.path, "--gorush", node.gorush.url, "--relay", filterNode.address, "--data", node.data)
        #expect(doctor.output.contains(/\nrelay +ok .*connected, and it took this node's topics\n/), "\(doctor.output)")
        #expect(node.leaks.isEmpty)
        let ended = await daemon.stop()
        #expect(ended.status == 0, "\(ended.errors.suffix(4_000))")
        await filterNode.close()
    }
}

/// A relay that serves filter and lightpush, for one client.
private final class FilterNode: Sendable {
    private struct State {
        var client: PeerID?
        var topics: Set<ContentTopic> = []
        var pushedCount = 0
        var lightpushCount = 0
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
            state.value.withLock {
                $0.client = stream.peer
                $0.topics.formUnion(request.contentTopics)
            }
            let response = FilterSubscribeResponse(requestID: request.requestID, status: WakuStatus(code: 200))
            try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
        }
        relay.host.serve(WakuProtocol.lightpush) { [weak relay] stream in
            var reader = MessageReader(stream, limit: 1 << 18)
            guard let bytes = try await reader.next() else { return }
            let request = try LightpushRequest(parsing: Array(bytes.readableBytesView))
            try await relay?.publish(request.message, on: .statusDefault)
            state.value.withLock { $0.lightpushCount += 1 }
            let response = LightpushResponse(requestID: request.requestID, status: WakuStatus(code: 200), relayPeerCount: 1)
            try await stream.writeMessage(ByteBuffer(bytes: response.encoded()))
        }
        try await relay.listen()
        address = try #require(relay.listenAddresses.first).description
        running = Task {
            await relay.run { messages in
                let (client, topics) = state.value.withLock { ($0.client, $0.topics) }
                guard let client else { return }
                for message in messages where topics.contains(message.message.contentTopic) {
                    guard let stream = try? await relay.host.openStream(to: client, [WakuProtocol.filterPush]) else { continue }
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
