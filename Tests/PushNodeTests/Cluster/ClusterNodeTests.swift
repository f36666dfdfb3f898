import Cluster
import Delivery
import Gorush
import NodeAssembly
import NodeMetrics
import ServiceLifecycle
import StatusServer
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

/// Several nodes in this process, over a real database.
@Suite("Several nodes", .timeLimit(.minutes(10))) struct ClusterNodeTests {
    private func clients(_ count: Int, _ fixture: ClusterFixture) -> [TestClient] {
        (0..<count).map { _ in TestClient(of: fixture.identity.publicKey) }
    }

    @Test("A message that all hear takes effect once, and is answered once")
    func effectOnce() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(40, fixture)
        // Nobody takes what another node is slow with.
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

    @Test("What the node whose turn it is does not hear is taken by the other")
    func deaf() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(20, fixture)
        try await fixture.withNodes(["a", "b"]) { members in
            try await members.waitUntilShared()
            await members[0].relay.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0[0].fed.count(.registrationStored) == 20 }
            #expect(members[1].fed.count(.registrationStored) == 0)
            // The other listens for those registrants already, by what the database tells.
            try await members.wait { $0[1].fed.node.topicCount == $0[0].fed.node.topicCount }
            await members[1].relay.feed(clients.flatMap { fixture.query($0) })
            try await members.wait { $0[1].fed.count(.queryAnswered) == 20 }
            await members[1].relay.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { $0[1].fed.count(.requestAnswered) == 20 }
            #expect(fixture.gorush.accepted.count == 20)
        }
    }

    @Test("A node that stops hands its devices over, and what waits is posted by the other")
    func handover() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(20, fixture)
        try await fixture.withNodes(["a", "b"], configure: { $0.answerDeadline = .milliseconds(100) }) { members in
            try await members.waitUntilShared()
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.count(.registrationStored) == 20 }
            fixture.gorush.answer(.failed(retryAfter: nil))
            await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
            try await members.wait { $0.count(.requestAnswered) == 20 }
            await members[1].services.triggerGracefulShutdown()
            try await members.wait { $0[0].fed.node.cluster?.share == 256 }
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
            let cluster = try #require(members[0].fed.node.cluster)
            try await members.waitUntilShared()
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0.published.count == 10 && cluster.openCount == 0 }
            await members.feed(clients.flatMap { fixture.query($0) })
            try await members.wait { $0.count(.queryAnswered) == 10 }
            // The answers go out 3 s after the queries.
            #expect(cluster.openCount == 0)
        }
    }

    @Test("A node alone takes everything, and goes on where it stopped")
    func alone() async throws {
        let fixture = try await ClusterFixture()
        let clients = clients(5, fixture)
        for round in 0..<2 {
            try await fixture.withNodes(["a"]) { members in
                try await members.waitUntilShared()
                await members.feed(clients.flatMap { fixture.registration($0, version: UInt64(round) + 1) })
                try await members.wait { $0.count(.registrationStored) == 5 }
                await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\(round) \($0)") })
                try await members.wait { $0.count(.requestAnswered) == 5 }
                #expect(fixture.gorush.accepted.count == 5 * (round + 1))
            }
        }
    }

    @Test("A database that nodes share is refused to a node that has it for itself, and the other way round")
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
