import Core
import NodeAssembly
import NodeMetrics
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import Delivery
@testable import PushNode

/// A full outbox while gorush is away, across restarts: strangers' notifications make room for those of devices that gorush has delivered to.
@Suite(.timeLimit(.minutes(5))) struct OutboxStandingTests {
    private static let places = 12

    @Test(arguments: StoreEngine.allCases) func strangersDoNotDisplaceTheKnownAfterARestart(engine: StoreEngine) async throws {
        let (fixture, location) = (try NodeFixture(), try await engine.location())
        let honest = TestClient(of: fixture.identity.publicKey)
        let strangers = (0..<12).map { _ in TestClient(of: fixture.identity.publicKey) }
        let waiting = (0..<6).map { [UInt8(1), UInt8($0)] }
        let configure: @Sendable (inout ServerConfiguration) -> Void = {
            $0.store = location
            $0.outboxLimit = Self.places
            $0.unknownHold = .zero
        }
        /// Notifications for all strangers, of which each has fewer waiting than the honest device.
        @Sendable func flood(_ node: RunningNode, _ round: UInt8) async throws {
            for stranger in strangers { _ = try await node.notify(stranger, messageID: [2, round]) }
        }
        try await fixture.withNode(configure: configure) { node async throws in
            for (number, client) in ([honest] + strangers).enumerated() {
                #expect(try await node.register(client, token: "token \(number)") == nil)
            }
            #expect(try await node.notify(honest) == nil)
            node.gorush.answer(.failed(retryAfter: .seconds(60)))
            for id in waiting { #expect(try await node.notify(honest, messageID: id) == .internalError) }
            try await flood(node, 0)
            try await node.wait { node.count(.notificationEvicted) == 6 }
        }
        // The outbox is loaded, and standing is read from the accepted notifications.
        try await fixture.withNode(configure: configure) { node async throws in
            let delivery = node.node.delivery
            try await node.wait { delivery.table.withLock { $0.knownCount == 1 } }
            try await flood(node, 1)
            try await node.wait { node.count(.notificationEvicted) == 12 }
        }
        fixture.gorush.answer(.accepted)
        try await fixture.withNode(configure: configure) { node async throws in
            try await node.wait { node.gorush.accepted.count == 1 + Self.places }
            let accepted = Set(node.gorush.accepted.map(\.id))
            #expect(waiting.allSatisfy { accepted.contains(DeliveryID(messageID: $0, key: honest.key).notificationID) })
        }
    }
}
