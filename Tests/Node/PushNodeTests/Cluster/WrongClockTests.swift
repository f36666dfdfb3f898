import Core
@testable import Cluster
import Delivery
import NodeAPI
import NodeAssembly
import NodeMetrics
import StatusServer
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Clocks that are wrong", .timeLimit(.minutes(10))) struct WrongClockTests {
    /// As seen from the node `c`.
    private final class Clock: Sendable {
        private let offset: Mutex<Duration>

        init(_ offset: Duration) { self.offset = Mutex(offset) }
        func set(_ offset: Duration) { self.offset.withLock { $0 = offset } }
        func now(_ name: String) -> Timestamp { name == "c" ? .now() + offset.withLock(\.self) : .now() }
    }

    private func clock(_ member: ClusterFixture.Member) -> Finding? { member.fed.node.findings.first { $0.check == "clock" } }

    @Test("A node whose clock differs from the database's by 20 minutes takes no share until it is corrected", arguments: [-1200, 1200])
    func wrong(seconds: Int) async throws {
        let fixture = try await ClusterFixture()
        let clients = (0..<30).map { _ in TestClient(of: fixture.identity.publicKey) }
        let clock = Clock(.seconds(seconds))
        // A slow node keeps its messages.
        func wait(_ configuration: inout ServerConfiguration) { configuration.cluster?.times.rankDelay = .seconds(120) }
        try await fixture.withNodes(["a", "b", "c"], configure: wait, now: clock.now) { members in
            try await Array(members.prefix(2)).waitUntilShared()
            let node = members[2].fed.node
            #expect(node.cluster.share == 0)
            #expect(node.obstacles.contains { $0.hasPrefix("clock: 1200") && $0.hasSuffix("the database's") }, "\(node.obstacles)")
            #expect(node.base.alarms.isActive(.clock))
            #expect(members[0].fed.node.obstacles.isEmpty && self.clock(members[0])?.verdict == .ok)

            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.count(.registrationStored) == 30 }
            await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { $0.count(.requestAnswered) == 30 }
            #expect(fixture.gorush.accepted.count == 30)
            #expect(members[2].fed.count(.registrationStored) == 0)

            clock.set(.seconds(5))
            try await members.waitUntilShared()
            #expect(node.obstacles.isEmpty && self.clock(members[2])?.verdict == .warn && node.base.alarms.isActive(.clock))
            clock.set(.zero)
            try await members.wait { !$0[2].fed.node.base.alarms.isActive(.clock) }
            await members.feed(clients.flatMap { fixture.registration($0, version: 2) })
            try await members.wait { $0.count(.registrationStored) == 60 }
            #expect(members[2].fed.count(.registrationStored) > 0)
        }
    }

    @Test("When the database's clock differs from all nodes' clocks, they continue and are ready")
    func databaseClock() async throws {
        let fixture = try await ClusterFixture()
        let client = TestClient(of: fixture.identity.publicKey)
        try await fixture.withNodes(["a", "b"], now: { _ in .now() + .seconds(300) }) { members in
            try await members.waitUntilShared()
            await members.feed(fixture.registration(client))
            try await members.wait { $0.count(.registrationStored) == 1 }
            await members.feed(fixture.request(client, id: "x"))
            try await members.wait { $0.count(.requestAnswered) == 1 }
            #expect(fixture.gorush.accepted.count == 1)
            try await members.wait { $0.allSatisfy { $0.fed.node.obstacles.isEmpty } }
            #expect(members.allSatisfy { $0.fed.node.base.alarms.isActive(.clock) && self.clock($0)?.verdict == .warn })
            let finding = try #require(self.clock(members[0]))
            #expect(finding.text.hasSuffix("ahead of the database's, and so are the clocks of all nodes"), "\(finding.text)")
            #expect(finding.remedy?.hasPrefix("synchronise the clock of the database's machine") == true)
        }
    }

    @Test("A node alone compares its clock with the Waku node's")
    func alone() async throws {
        let folder = try TemporaryFolder()
        try await withFedNode(.generate(), folder.path, ScriptedGorush()) { node, relay in
            #expect(node.node.findings.allSatisfy { $0.check != "clock" })
            relay.clockAhead = .seconds(16)
            try await node.wait { node.node.obstacles == ["clock: 16.0 s behind the Waku node's"] }
            #expect(node.node.base.alarms.isActive(.clock))
            relay.clockAhead = .zero
            try await node.wait { node.node.obstacles.isEmpty && !node.node.base.alarms.isActive(.clock) }
        }
    }
}
