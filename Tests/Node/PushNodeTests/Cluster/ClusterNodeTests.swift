import NodeAPI
@testable import Cluster
import Delivery
import NodeAssembly
import NodeMetrics
import ServiceLifecycle
import RateLimits
import StatusServer
import Storage
import StorePostgreSQL
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

/// Several nodes in this process, over a real database.
@Suite("Several nodes", .timeLimit(.minutes(10))) struct ClusterNodeTests {
    private func clients(_ count: Int, _ fixture: ClusterFixture) -> [TestClient] {
        (0..<count).map { _ in TestClient(of: fixture.identity.publicKey) }
    }

    @Test("A message that all nodes receive takes effect once, and is answered once")
    func effectOnce() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(40, fixture)
        // No node takes over a message that another node handles slowly.
        func wait(_ configuration: inout ServerConfiguration) { configuration.cluster?.times.rankDelay = .seconds(120) }
        try await fixture.withNodes(["a", "b"], configure: wait) { members in
            try await members.waitUntilShared()
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.count(.registrationStored) == 40 }
            // Each has done a part.
            #expect(members.allSatisfy { $0.fed.count(.registrationStored) > 5 })

            await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { $0.count(.requestAnswered) == 40 }
            #expect(fixture.gorush.accepted.count == 40)
            #expect(members.count(.requestTaken) == 40)

            await members.feed(clients.flatMap { fixture.query($0) })
            try await members.wait { $0.count(.queryAnswered) == 40 }
            try await members.wait { $0.published.count >= 120 }
            #expect(members.published.count == 120)
            #expect(members.allSatisfy { $0.fed.count(.requestTaken) > 5 && $0.fed.count(.queryAnswered) > 5 })
        }
    }

    /// Its relay may be cut off from those of the others.
    @Test("A node that hears nothing holds the cursor from which nodes start, also that of the others")
    func cursorOfASilentNode() async throws {
        let fixture = try await ClusterFixture()
        try await fixture.withNodes(["a", "b"], configure: { $0.maintenanceInterval = .milliseconds(10) }) { members in
            let message = WakuMessage(payload: [1], contentTopic: ContentTopic(TopicTag(rawValue: 99)), timestamp: .now())
            for member in members { member.relay.missNothing() }
            await members[0].relay.feed([message])
            let store = members[0].fed.node.store
            @Sendable func cursor(_ suffix: String) -> Timestamp? {
                let value = try? store.read(Properties.property("relay seen until \(PubsubTopic.statusDefault.rawValue)\(suffix)"))
                return value.flatMap { $0 }.flatMap(Timestamp.init(bytes:))
            }
            try await members.wait { _ in cursor(" of a") == message.timestamp && cursor(" of b") != nil }
            try await members.wait { _ in cursor("") == cursor(" of b") }
            #expect(cursor(" of b").map { $0 < message.timestamp } == true)
        }
    }

    @Test("A node releases the partitions that another one is to have as soon as nothing is posted for them")
    func earlyRelease() async throws {
        let fixture = try await ClusterFixture()
        @Sendable func wait(_ configuration: inout ServerConfiguration) { configuration.cluster?.times.handoverTimeout = .seconds(3600) }
        try await fixture.withNodes(["a"], configure: wait) { first in
            try await first.waitUntilShared()
            try await fixture.withNodes(["b"], configure: wait) { second in try await (first + second).waitUntilShared() }
        }
    }

    /// Each has fewer than the limit, and both together have more: 128 consecutive devices belong to one node, the next to the other.
    @Test("A node that takes over more notifications than the limit of the outbox keeps all, and a new one displaces one")
    func takenOverBeyondTheLimit() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(160, fixture)
        func configure(_ configuration: inout ServerConfiguration) {
            configuration.outboxLimit = 140
            configuration.awaitLimit = .milliseconds(500)
            // No node takes over a message that another node handles slowly.
            configuration.cluster?.times.rankDelay = .seconds(120)
        }
        try await fixture.withNodes(["a", "b"], configure: configure) { members in
            let (first, second) = (members[0], members[1])
            try await members.waitUntilShared()
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.count(.registrationStored) == 160 }
            fixture.gorush.answer(.failed(retryAfter: nil))
            await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { members in
                let counts = members.map(\.fed.node.waitingCount)
                return counts.reduce(0, +) == 160 && counts.allSatisfy { $0 >= 32 }
            }
            // Otherwise the other node would handle the rest anew.
            try await members.wait { $0.count(.requestAnswered) == 160 }

            await second.services.triggerGracefulShutdown()
            try await first.fed.wait { first.fed.node.waitingCount == 160 }
            #expect(first.fed.count(.notificationEvicted) == 0)
            for number in 1...2 {
                await first.relay.feed(fixture.request(clients[number], id: "more"))
                try await first.fed.wait { first.fed.count(.notificationEvicted) == number && first.fed.node.waitingCount == 160 }
            }
            fixture.gorush.answer(.accepted)
            try await first.fed.wait { fixture.gorush.accepted.count == 160 && first.fed.node.waitingCount == 0 }
        }
    }

    /// Parts of two requests share transactions.
    @Test("A request that is committed in parts notifies each device once, and is answered once")
    func largeRequests() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(100, fixture)
        try await fixture.withNodes(["a", "b", "c"]) { members in
            try await members.waitUntilShared()
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.count(.registrationStored) == 100 }
            await members.feed(fixture.request(clients, id: "all") + fixture.request(Array(clients[..<20]), id: "some"))
            try await members.wait { $0.count(.requestAnswered) == 2 }
            #expect(fixture.gorush.accepted.count == 120 && Set(fixture.gorush.accepted.map(\.id)).count == 120)
            #expect(members.count(.requestTaken) == 2)
            try await members.wait { $0.published.count >= 102 }
            // Of the registrations, those that a busy node answers late are answered by another one, too.
            #expect(members.count(.requestAnswered) == 2)
        }
    }

    @Test("Each node reports the nodes, their partitions and the standbys of the database")
    func status() async throws {
        let fixture = try await ClusterFixture()
        try await fixture.withNodes(["a", "b"]) { members in
            try await members.waitUntilShared()
            try await members.wait { members in
                members.allSatisfy { $0.fed.node.cluster.status?.nodes.map(\.name) == ["a", "b"] }
                    && members.allSatisfy { $0.fed.node.cluster.status?.standbys != nil }
                    && members.allSatisfy { $0.fed.node.cluster.status?.nodes.count(where: \.isMaintainer) == 1 }
            }
            for (place, member) in members.enumerated() {
                let status = try #require(member.fed.node.cluster.status)
                #expect(status.nodes.map(\.isSelf) == [place == 0, place == 1])
                #expect(status.nodes.allSatisfy { $0.state == "live" && $0.secondsSinceRenewal != nil })
                #expect(status.nodes.reduce(0) { $0 + $1.partitions } + status.unownedPartitions == 256)
                #expect(status.nodes[place].partitions >= 127)
                #expect(status.standbys == [])
                #expect(status.lastFailover == nil)
            }
        }
    }

    @Test("A message that the responsible node does not receive is handled by the other")
    func deaf() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(20, fixture)
        try await fixture.withNodes(["a", "b"]) { members in
            try await members.waitUntilShared()
            await members[0].relay.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0[0].fed.count(.registrationStored) == 20 }
            #expect(members[1].fed.count(.registrationStored) == 0)
            // The other node listens for those registrants already: the database notified it.
            try await members.wait { $0[1].fed.node.topicCount == $0[0].fed.node.topicCount }
            await members[1].relay.feed(clients.flatMap { fixture.query($0) })
            try await members.wait { $0[1].fed.count(.queryAnswered) == 20 }
            await members[1].relay.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { $0[1].fed.count(.requestAnswered) == 20 }
            #expect(fixture.gorush.accepted.count == 20)
        }
    }

    @Test("A message in segments takes effect once, and is answered")
    func segments() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(12, fixture)
        try await fixture.withNodes(["a", "b"]) { members in
            try await members.waitUntilShared()
            let registrations = clients.map { fixture.registration($0, contacts: 13_000) }
            #expect(registrations.allSatisfy { $0.count > 1 })
            await members.feed(Array(registrations.joined()))
            try await members.wait { $0.count(.registrationStored) == 12 && $0.published.count >= 12 }
            try await members.wait { $0.allSatisfy { $0.fed.node.clusterNode?.openCount == 0 } }
            #expect(members.count(.registrationStored) == 12)
        }
    }

    @Test("An answer to a message in segments that a node can't publish is published by the other")
    func answersToSegments() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(12, fixture)
        try await fixture.withNodes(["a", "b"]) { members in
            try await members.waitUntilShared()
            members[0].relay.mute()
            await members.feed(clients.flatMap { fixture.registration($0, contacts: 13_000) })
            try await members.wait { $0[1].relay.published.count >= 12 }
            #expect(members.count(.registrationStored) == 12)
            #expect(members[0].fed.count(.registrationStored) > 0)
        }
    }

    @Test("Segments whose commit fails are tried again")
    func segmentsOnFailingStore() async throws {
        let server = try PostgreSQLServer()
        let fixture = ClusterFixture(address: try PostgreSQLAddress(server.address))
        let clients = clients(6, fixture)
        try await fixture.withNodes(["a"]) { members in
            try await members.waitUntilShared()
            try server.stop()
            await members.feed(clients.flatMap { fixture.registration($0, contacts: 13_000) })
            try await members.wait { $0.count(.failedStore) >= 6 }
            try server.start()
            // Those that come back in time are stored; the others are answered with an error.
            try await members.wait { $0.published.count >= 6 }
            let repeated = clients.flatMap { fixture.registration($0, version: 2, contacts: 13_000) }
            let before = members.count(.registrationStored)
            try await members.wait { $0[0].fed.node.cluster.failure == nil }
            await members.feed(repeated)
            try await members.wait { $0.count(.registrationStored) >= before + 6 }
        }
    }

    @Test("A registrant whose notification was missed is found by reading the changes")
    func changes() async throws {
        let fixture = try await ClusterFixture()
        try await fixture.withNodes(["a"], configure: { $0.cluster?.times.changeInterval = .milliseconds(50) }) { members in
            try await members.waitUntilShared()
            let before = members[0].fed.node.topicCount
            let connection = try PostgreSQLConnection.open(fixture.address, name: "test")
            let name = randomBytes(64).map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined()
            _ = try connection.run(
                Statement("INSERT INTO cluster_change (channel, payload) VALUES ('registrant_1', $1)", [.text(name)], isPrepared: false))
            try await members.wait { $0[0].fed.node.topicCount > before }
        }
    }

    @Test("When a synchronous standby takes over, nothing is lost, and the nodes continue")
    func failover() async throws {
        let primary = try PostgreSQLServer()
        let standby = try PostgreSQLServer(standbyOf: primary)
        try await primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        let address = try PostgreSQLAddress("host=\(primary.folder),\(standby.folder) dbname=postgres user=postgres")
        let fixture = ClusterFixture(address: address)
        let (before, after) = (clients(20, fixture), clients(20, fixture))
        try await fixture.withNodes(["a", "b"], configure: { $0.awaitLimit = .milliseconds(100) }) { members in
            try await members.waitUntilShared()
            await members.feed(before.flatMap { fixture.registration($0) })
            try await members.wait { $0.count(.registrationStored) == 20 }
            fixture.gorush.answer(.failed(retryAfter: nil))
            await members.feed(before.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { $0.count(.requestAnswered) == 20 }

            try primary.kill()
            try standby.promote()
            try await members.wait { $0.count(.registrationStored) == 20 && $0.allSatisfy { $0.fed.node.store.failure == nil } }
            await members.feed(after.flatMap { fixture.registration($0) })
            // While it is away they are answered with an error, and clients repeat them.
            try await members.wait { $0.published.count >= 60 }
            try await members.waitUntilShared()
            await members.feed(after.flatMap { fixture.registration($0, version: 2) })
            try await members.wait { $0.published.count >= 80 }
            fixture.gorush.answer(.accepted)
            try await members.wait { _ in fixture.gorush.accepted.count >= 20 }
            let answered = members.count(.queryAnswered)
            await members.feed((before + after).flatMap { fixture.query($0) })
            try await members.wait { $0.count(.queryAnswered) >= answered + 40 && $0.published.count >= 120 }
            try await members.wait { $0.allSatisfy { $0.fed.node.delivery.waitingCount == 0 } }
            #expect(fixture.gorush.accepted.count == 20)
        }
    }

    @Test("A node joins nodes of a later release that only added to the tables, and refuses other changes")
    func laterRelease() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(20, fixture)
        @Sendable func run(_ sql: String) throws {
            _ = try PostgreSQLConnection.open(fixture.address, name: "test").run(Statement(sql, isPrepared: false))
        }
        try await fixture.withNodes(["a"]) { first in
            try await first.waitUntilShared()
            try run("ALTER TABLE registration ADD COLUMN later bigint")
            try run("INSERT INTO store_migration (identifier, only_adds) VALUES ('status 99', true)")
            try await fixture.withNodes(["b"]) { second in
                let members = first + second
                try await members.waitUntilShared()
                await members.feed(clients.flatMap { fixture.registration($0) })
                try await members.wait { $0.count(.registrationStored) == 20 }
                #expect(members.allSatisfy { $0.fed.count(.registrationStored) > 0 })
            }
            try run("INSERT INTO store_migration (identifier, only_adds) VALUES ('status 100', false)")
            let error = await #expect(throws: StoreError.self) { try await fixture.withNodes(["c"]) { _ in } }
            #expect(error?.code == .newer)
        }
    }

    @Test("A node that stops hands its devices over, and waiting notifications are posted by the other")
    func handover() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(20, fixture)
        try await fixture.withNodes(["a", "b"], configure: { $0.awaitLimit = .milliseconds(100) }) { members in
            try await members.waitUntilShared()
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.count(.registrationStored) == 20 }
            fixture.gorush.answer(.failed(retryAfter: nil))
            await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { $0.count(.requestAnswered) == 20 }
            await members[1].services.triggerGracefulShutdown()
            try await members.wait { $0[0].fed.node.cluster.share == 256 }
            fixture.gorush.answer(.accepted)
            try await members.wait { _ in fixture.gorush.accepted.count >= 20 }
            try await members.wait { $0[0].fed.node.delivery.waitingCount == 0 }
            #expect(fixture.gorush.accepted.count == 20)
        }
    }

    @Test("A query is finished for other nodes while its answer is held")
    func heldAnswers() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(10, fixture)
        try await fixture.withNodes(["a"], configure: { $0.replyDelay = .seconds(3) }) { members in
            let cluster = try #require(members[0].fed.node.clusterNode)
            try await members.waitUntilShared()
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.published.count == 10 && cluster.openCount == 0 }
            await members.feed(clients.flatMap { fixture.query($0) })
            try await members.wait { $0.count(.queryAnswered) == 10 }
            // The answers go out 3 s after the queries.
            #expect(cluster.openCount == 0)
        }
    }

    @Test("A node that stops tells the others which messages it has finished")
    func finishedAtTheStop() async throws {
        let fixture = try await ClusterFixture()
        // In several rows, for which there is no time before the stop.
        try await fixture.withNodes(["a"], configure: { $0.cluster?.times.finishedRowLimit = 2 }) { members in
            let cluster = try #require(members[0].fed.node.clusterNode)
            cluster.state.withLock { state in
                for prefix in 1...200 as ClosedRange<UInt64> { state.share.log.add(MessageKey(prefix: prefix)) }
            }
        }
        let database = ClusterDatabase(fixture.address, configuration: ClusterConfiguration(), outbox: ClusterNode.outbox, version: "")
        #expect(try database.finishedRows(after: [:], except: NodeID(rawValue: 1)).flatMap(\.prefixes).sorted() == Array(1...200))
    }

    @Test("A single node of a cluster handles everything, and continues after a restart")
    func alone() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(5, fixture)
        for round in 0..<2 {
            try await fixture.withNodes(["a"]) { members in
                try await members.waitUntilShared()
                await members.feed(clients.flatMap { fixture.registration($0, version: UInt64(round) + 1) })
                try await members.wait { $0.count(.registrationStored) == 5 }
                await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\(round) \($0)") })
                // On a busy machine some are answered before gorush has accepted them.
                try await members.wait { $0.count(.requestAnswered) == 5 && fixture.gorush.accepted.count == 5 * (round + 1) }
            }
        }
    }

    @Test("A second live node with the same name is refused, and one that was killed is neither waited for nor another node")
    func sameName() async throws {
        let fixture = try await ClusterFixture()
        try await fixture.withNodes(["a"]) { members in
            try await members.waitUntilShared()
            await #expect {
                try await fixture.withNodes(["a"]) { _ in }
            } throws: {
                ($0 as? StoreError)?.code == .locked && "\($0)".contains("a node named a runs")
            }
            #expect(members[0].fed.node.obstacles.isEmpty)
        }
        // As a node that was killed leaves it.
        let connection = try PostgreSQLConnection.open(fixture.address, name: "test")
        let insert = """
            INSERT INTO cluster_node (node, renewals, state, name, version, hashing_version, gorush_timeout, renewed_at) \
            VALUES (7, 3, 'live', 'a', '', 1, 60000, now())
            """
        _ = try connection.run(Statement(insert, isPrepared: false))
        try await fixture.withNodes(["a"]) { members in
            try await members[0].fed.wait { members[0].fed.node.obstacles.isEmpty }
            #expect(!members[0].fed.node.findings.contains { $0.check == "nodes" && $0.verdict == .warn })
        }
    }

    @Test("Nodes with different limits continue, with a warning that names these until they are the same")
    func otherLimits() async throws {
        let fixture = try await ClusterFixture()
        let calls = Mutex(0)
        func configure(_ configuration: inout ServerConfiguration) {
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            configuration.limits.queries = isFirst ? nil : RateLimit(5, per: .second)
        }
        try await fixture.withNodes(["a", "b"], configure: configure) { members in
            try await members.waitUntilShared()
            @Sendable func warning(_ place: Int) -> String? { members[place].fed.node.findings.first { $0.check == "nodes" }?.text }
            try await members.wait { _ in warning(0) != nil && warning(1) != nil }
            #expect(warning(0)?.hasPrefix("--limit queries is off here and 5/s") == true, "\(warning(0) ?? "")")
            #expect(warning(0)?.hasSuffix(" at b") == true)
            #expect(members.allSatisfy { $0.fed.node.obstacles.isEmpty })
            members[0].fed.node.cluster.replaceSettings([
                "--limit queries": members[1].fed.node.clusterNode?.settings["--limit queries"] ?? ""
            ]
            )
            try await members.wait { _ in warning(0) == nil && warning(1) == nil }
        }
    }

    @Test("A node without a cluster is refused a database that nodes share, and the other way round")
    func exclusion() async throws {
        let fixture = try await ClusterFixture()
        try await fixture.withNodes(["a"]) { members in
            let error = await #expect(throws: (any Error).self) {
                try await fixture.withNodes(["b"], configure: { $0.cluster = nil }) { _ in }
            }
            let refusal = try #require(error)
            #expect("\(refusal)".contains("in use"))
        }
    }
}
