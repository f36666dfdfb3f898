import NodeAPI
import Cluster
import NodeMetrics
import Core
import SessionProtocol
import StorePostgreSQL
import TestSupport
import Testing

@testable import PushNode
@testable import SessionServer

/// Nodes in this process that share a real database and one gorush, each with a fake monitor.
@Suite("Session: several nodes", .timeLimit(.minutes(10)))
struct SessionClusterTests {
    private let first: SessionNodeFixture
    private let second: SessionNodeFixture

    init() async throws {
        let address = try PostgreSQLAddress(try await PostgreSQLServer.shared().makeDatabase())
        let template = try SessionNodeFixture()
        first = try SessionNodeFixture("a", of: template, sharing: address)
        second = try SessionNodeFixture("b", of: template, sharing: address)
    }

    private func service(_ node: SessionNodeFixture.Running) -> SessionService? { node.service }

    private func nodeCount(_ node: SessionNodeFixture.Running) -> Int? { service(node)?.sharedMonitoring?.share?.nodeCount }

    /// Whether the nodes know each other, and each account is monitored by exactly one.
    private func isDivided(_ accounts: [SessionAccount], _ nodes: SessionNodeFixture.Running...) -> Bool {
        let monitored = nodes.flatMap(\.fixture.monitor.accounts)
        return nodes.allSatisfy { nodeCount($0) == nodes.count } && monitored.count == accounts.count
            && Set(monitored) == Set(accounts.map(\.id))
    }

    @Test("The lines for operators say so while each node serves all accounts")
    func sharedByNone() {
        #expect(KeyShare(generation: 1, nodeCount: 0) { _ in true }.fact.value == "none: each node serves all accounts")
        #expect(KeyShare(generation: 2, nodeCount: 2) { _ in true }.fact.value == "2")
    }

    @Test("Each account is monitored by one node, and moves when its node leaves")
    func division() async throws {
        let accounts = try (0..<24).map { _ in try SessionAccount.sessionID() }
        let devices = accounts.map { _ in SessionDevice(.apns) }
        try await first.withNode(configure: { $0.handoverTime = .zero }) { a async throws in
            for (account, device) in zip(accounts, devices).prefix(12) { _ = try await a.subscribe(account, device) }
            try await eventually { isDivided(Array(accounts.prefix(12)), a) }
            try await second.withNode(configure: { $0.handoverTime = .zero }) { b async throws in
                // Existing accounts of the second node's share have moved.
                try await eventually { isDivided(Array(accounts.prefix(12)), a, b) }
                // The other accounts subscribe at one node, and are monitored by the node that owns them.
                for (account, device) in zip(accounts, devices).dropFirst(12) { _ = try await a.subscribe(account, device) }
                try await eventually { isDivided(accounts, a, b) }
                #expect(first.monitor.accounts.count > 2 && second.monitor.accounts.count > 2)
                #expect(await service(b)?.facts().contains { $0.name == "nodes that share the accounts" && $0.value == "2" } == true)

                // During a change both nodes may receive a message: it is posted once.
                let reports = accounts.map { message(for: $0) }
                async let reported: Void = first.monitor.report(reports)
                await second.monitor.report(reports.reversed())
                await reported
                try await eventually { first.gorush.posted.count >= accounts.count }
                #expect(first.gorush.tokens.sorted() == devices.map(\.token).sorted())
                let counters = [a, b].map(\.node.counters)
                #expect(counters.reduce(0) { $0 + $1.count(.sessionNotification) } == accounts.count)
                #expect(counters.reduce(0) { $0 + $1.count(.sessionDuplicate) } == accounts.count)

                // A subscription that ends at one node is no longer posted by the other.
                _ = try await b.ask("/unsubscribe", accounts[0].json(accounts[0].unsubscription(devices[0])))
                await first.monitor.report([message(for: accounts[0])])
                #expect(a.node.counters.count(.sessionDropped(.unwanted)) == 1)
            }
            let others = accounts.dropFirst().map(\.id)
            try await eventually { nodeCount(a) == 1 && Set(first.monitor.accounts).isSuperset(of: others) }
        }
    }

    @Test("An account that moves is monitored by both nodes for a while")
    func handover() async throws {
        let accounts = try (0..<16).map { _ in try SessionAccount.sessionID() }
        try await first.withNode(configure: { $0.handoverTime = .seconds(3600) }) { a async throws in
            for account in accounts { _ = try await a.subscribe(account, SessionDevice()) }
            // Waits until this node has joined; otherwise the other node would start with all accounts.
            try await eventually { first.monitor.accounts.count == 16 && nodeCount(a) == 1 }
            try await second.withNode(configure: { $0.handoverTime = .seconds(3600) }) { b async throws in
                try await eventually {
                    guard let share = service(b)?.sharedMonitoring?.share, share.nodeCount == 2 else { return false }
                    return Set(second.monitor.accounts) == Set(accounts.map(\.id).filter { share.contains($0.leadingBits) })
                }
                #expect(first.monitor.accounts.count == 16)
            }
        }
        // Neither while the time passed, nor because a node stopped.
        #expect(first.monitor.removals == 0 && second.monitor.removals == 0)
    }

    @Test("A node that stops monitors its accounts until the other one does")
    func stop() async throws {
        let accounts = try (0..<16).map { _ in try SessionAccount.sessionID() }
        try await first.withNode(configure: { $0.handoverTime = .zero }) { a async throws in
            for account in accounts { _ = try await a.subscribe(account, SessionDevice()) }
            try await eventually { isDivided(accounts, a) }
            try await second.withNode(configure: { $0.handoverTime = .seconds(3600) }) { b async throws in
                try await eventually { isDivided(accounts, a, b) }
                second.monitor.setSuccessor(first.monitor)
            }
            #expect(!second.monitor.accounts.isEmpty)
            #expect(Set(second.monitor.successorsAccounts ?? []) == Set(accounts.map(\.id)))
        }
    }

    @Test("A node that reaches no storage server leaves all accounts to the other, until it reaches one")
    func withoutServers() async throws {
        let accounts = try (0..<16).map { _ in try SessionAccount.sessionID() }
        second.monitor.figures.connectedServers = 0
        try await first.withNode(configure: { $0.handoverTime = .zero }) { a async throws in
            for account in accounts { _ = try await a.subscribe(account, SessionDevice()) }
            try await eventually { isDivided(accounts, a) }
            try await second.withNode(configure: { $0.handoverTime = .zero }) { b async throws in
                try await eventually { nodeCount(b) != nil && nodeCount(b) == nodeCount(a) }
                #expect(second.monitor.accounts.isEmpty && first.monitor.accounts.count == 16)
                second.monitor.figures.connectedServers = 4
                try await eventually { isDivided(accounts, a, b) }
                // Withdraws, as after a minute without a connection.
                b.node.cluster.offerKeys(false)
                try await eventually { second.monitor.accounts.isEmpty && first.monitor.accounts.count == 16 }
            }
        }
    }

    @Test func accountsAreOfferedWhileStorageServersAreReachedOrNobodyElseHasThem() {
        var offer = AccountOffer()
        func changes(_ isConnected: Bool, others: Bool, at second: Int) -> Bool? {
            offer.update(isConnected: isConnected, hasOthers: others, at: .seconds(second)) ? offer.isOffered : nil
        }
        #expect(changes(false, others: false, at: 0) == nil)
        #expect(changes(true, others: true, at: 1) == true)
        #expect(changes(true, others: true, at: 10) == nil)
        #expect(changes(false, others: true, at: 69) == nil)
        #expect(changes(false, others: false, at: 100) == nil)
        #expect(changes(false, others: true, at: 101) == false)
        #expect(changes(false, others: true, at: 200) == nil)
        #expect(changes(true, others: true, at: 201) == true)
        #expect(changes(false, others: true, at: 260) == nil)
        #expect(changes(false, others: true, at: 261) == false)
    }
}
