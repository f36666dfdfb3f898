import NodeAPI
@testable import Delivery
import NodeAssembly
import NodeMetrics
@testable import PushNode
import Core
import SessionProtocol
import Storage
import StorePostgreSQL
import Synchronization
import Testing
import TestSupport

@testable import SessionServer

/// The outbox, the accepted deliveries and `session_seen` together remember a delivery for 24 hours, for every outcome.
@Suite("Session: a second report of a message", .timeLimit(.minutes(5)))
struct SecondReportTests {
    enum Engine: CaseIterable {
        case sqlite, postgreSQL

        /// The location of a new database.
        func location() async throws -> StoreLocation {
            switch self {
            case .sqlite: .dataFolder
            case .postgreSQL: .postgreSQL(try PostgreSQLAddress(try await PostgreSQLServer.shared().makeDatabase()))
            }
        }
    }

    /// The outcome of the first report's notification.
    enum Ending: CaseIterable {
        case waits
        case accepted
        /// Expired, evicted, refused by gorush, or dropped by the operator.
        case givenUp
        case unsubscribed
        case tokenDead
        case subscriptionExpired
    }

    private func end(_ ending: Ending, _ account: SessionAccount, _ device: SessionDevice, in fixture: SessionStoreFixture) async throws {
        let waiting = try #require(try fixture.waiting.first)
        let (now, store) = (Timestamp.now(), fixture.store)
        switch ending {
        case .waits: break
        case .accepted:
            let posted = PostedNotification(delivery: waiting.delivery, device: waiting.device, version: 1)
            try await store.commit(.change(DeliveryStorage.accept(posted, postedAs: nil, at: now)))
        case .givenUp:
            try await store.commit(DeliveryStorage.drop([waiting.id], of: NodeAssembly.deliverySources(of: store), at: now))
        case .unsubscribed:
            try await fixture.apply([.unsubscribe(account.unsubscription(device, at: .now - 5))])
        case .tokenDead:
            let version = try #require(try fixture.records(of: account).first).authority.signedAt
            try await store.commit(fixture.source.endDevice(waiting.device.row, version: UInt64(bitPattern: version), at: now))
        case .subscriptionExpired:
            #expect(try await store.commit(Subscriptions.expire(at: .now + 15 * .day, limit: 10)).count == 1)
        }
        #expect(try fixture.waiting.isEmpty == (ending != .waits))
    }

    @Test("makes no second notification, for every outcome of the first", arguments: Ending.allCases, Engine.allCases)
    func known(ending: Ending, engine: Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let (account, device) = (try SessionAccount.sessionID(), SessionDevice())
        try await fixture.subscribe(account, device, at: .now - 10)
        let report = message(for: account)
        let prepared = try fixture.prepare(report)
        #expect(try await fixture.notify(report).queued.count == 1)
        try await end(ending, account, device, in: fixture)
        // The device subscribes again and gets another row, but it is the same subscription.
        try await fixture.subscribe(account, device)
        let second = try await fixture.notify(report)
        #expect(second.queued.isEmpty && second.duplicates == 1 && second.isWanted)
        // Also if the message was prepared before the first notification was made, in a batch or by itself.
        _ = try await fixture.store.commit(fixture.subscriptions.notifyTogether([prepared]))
        #expect(try await fixture.notify(prepared).queued.isEmpty)
        #expect(try fixture.waiting.count == (ending == .waits ? 1 : 0))
        // Another message makes a notification.
        #expect(try await fixture.notify(message(for: account)).queued.count == 1)
        try fixture.store.close()
    }

    @Test("is not suppressed by one with an end that is near, whatever became of that one's notification", arguments: Engine.allCases)
    func nearEnd(engine: Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let (account, device) = (try SessionAccount.sessionID(), SessionDevice())
        try await fixture.subscribe(account, device, at: .now - 10)
        let now = Timestamp.now()
        let honest = message(for: account)
        let near = NotifyMessage(
            account: honest.account, hash: honest.hash, namespace: honest.namespace, storedAt: honest.storedAt,
            expiresAt: now.milliseconds + 300, data: honest.data.map { Array($0) })
        func prepare(_ report: NotifyMessage) throws -> PreparedMessage { try fixture.prepare(report, receivedAt: now) }
        #expect(try await fixture.notify(try prepare(near)).queued.count == 1)
        // A server may report any end: the expiry is no loss of the node.
        #expect(fixture.source.othersChooseExpiry)
        try await end(.givenUp, account, device, in: fixture)
        let queued = try await fixture.notify(try prepare(honest)).queued
        #expect(queued.map(\.waiting.expires) == [Timestamp(milliseconds: now.milliseconds + 600_000)])
        // Each is known from then on.
        for report in [near, honest] { #expect(try await fixture.notify(try prepare(report)).duplicates == 1) }
        #expect(try fixture.waiting.count == 1)
        try fixture.store.close()
    }

    /// Its lifetime is the age limit: the report that arrives first is before the end, and the other after it.
    @Test("is recognized if the age limit passes the end of the message between both", arguments: Engine.allCases, [[0, 1], [1, 0]])
    func endAtTheAgeLimit(engine: Engine, order: [Int64]) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let account = try SessionAccount.sessionID()
        try await fixture.subscribe(account, SessionDevice(), at: .now - 10)
        let now = Timestamp.now()
        let report = message(for: account, expiresAt: now.milliseconds + 600_000)
        func prepare(_ milliseconds: Int64) throws -> PreparedMessage {
            try fixture.prepare(report, receivedAt: now + .milliseconds(milliseconds), at: now)
        }
        let reports = try order.map { try prepare(1000 * $0 - 500) }
        #expect(reports[0].notifications.map(\.delivery) != reports[1].notifications.map(\.delivery))
        #expect(try await fixture.notify(reports[0]).queued.count == 1)
        #expect(try await fixture.notify(reports[1]).duplicates == 1)
        #expect(try await fixture.store.commit(fixture.subscriptions.notifyTogether([reports[1]])).map { $0?.duplicates } == [1])
        // Both in one command.
        try await fixture.subscribe(account, SessionDevice())
        let both = try order.map { try prepare(1000 * $0 - 500) }
        let notified = try await fixture.store.commit(fixture.subscriptions.notifyTogether(both))
        #expect(notified.map { $0?.queued.count } == [1, 0] && notified.map { $0?.duplicates } == [1, 2])
        try fixture.store.close()
    }

    @Test("for several devices is recognized for each of them", arguments: Engine.allCases)
    func eachDevice(engine: Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location())
        let (account, devices) = (try SessionAccount.sessionID(), (0..<3).map { _ in SessionDevice() })
        for device in devices { try await fixture.subscribe(account, device, at: .now - 10) }
        let reports = (0..<2).map { _ in message(for: account) }
        for report in reports { #expect(try await fixture.notify(report).queued.count == 3) }
        // One body ends two subscriptions with two notifications each.
        try await fixture.apply(devices.prefix(2).map { .unsubscribe(account.unsubscription($0, at: .now - 5)) })
        #expect(try fixture.waiting.count == 2)
        for device in devices.prefix(2) { try await fixture.subscribe(account, device) }
        for report in reports { #expect(try await fixture.notify(report).duplicates == 3) }
        #expect(try fixture.waiting.count == 2)
        try fixture.store.close()
    }

    /// The other node's notification has left the outbox between this node's reads and its changes.
    @Test("at another node at the same time makes no second notification", arguments: Engine.allCases)
    func atOnce(engine: Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location(), isShared: true)
        let (account, devices) = (try SessionAccount.sessionID(), [SessionDevice(), SessionDevice()])
        for device in devices { try await fixture.subscribe(account, device, at: .now - 10) }
        let report = message(for: account)
        let prepared = try fixture.prepare(report)
        var stale = fixture.subscriptions.notifyTogether([prepared])
        while case .read(let reads, let next) = stale { stale = try next(try fixture.store.read(.read(reads) { .done($0) })) }
        #expect(try await fixture.notify(report).queued.map(\.waiting) == (try fixture.waiting))
        for waiting in try fixture.waiting {
            let posted = PostedNotification(delivery: waiting.delivery, device: waiting.device, version: 1)
            try await fixture.store.commit(.change(DeliveryStorage.accept(posted, postedAs: nil, at: .now())))
        }
        await #expect(throws: StoreError.self) { try await fixture.store.commit(stale) }
        #expect(try fixture.waiting.isEmpty)
        // Read again, it is known.
        #expect(try await fixture.store.commit(fixture.subscriptions.notifyTogether([prepared])).map { $0?.duplicates } == [2])
        try fixture.store.close()
    }

    @Test("is recognized by nodes of earlier releases if several nodes share the store", arguments: Engine.allCases)
    func shared(engine: Engine) async throws {
        let fixture = try SessionStoreFixture(at: try await engine.location(), isShared: true)
        let (account, device) = (try SessionAccount.sessionID(), SessionDevice())
        try await fixture.subscribe(account, device)
        try await fixture.notify(message(for: account))
        // Nodes of earlier releases read only this table.
        let find = Query(SessionStorage.seen, [SessionStorage.delivery])
        let found = try fixture.store.read(StoreCommand.find(find()) { .done(try $0.map { try $0.bytes(0) }) })
        #expect(found == (try fixture.waiting.map(\.delivery.bytes)))
        try fixture.store.close()
    }

    @Test("is recognized while accepted deliveries are kept: 24 hours, or the maximum age if that is longer", arguments: [1, 100])
    func memory(ageLimit: Int) async throws {
        let fixture = try SessionNodeFixture()
        let memory = try await fixture.withNode(configure: { $0.ageLimit = .seconds(ageLimit * 3600) }) { running in
            try #require(running.service?.deliveryMemory)
        }
        #expect(memory.duration == .seconds(max(24, ageLimit) * 3600) && memory.rowLimit == 50_000_000)
        let now = Timestamp.now()
        let kept = Retention(cutoff: now - .seconds(60), rowLimit: 1000, now: now).covering([memory])
        #expect(kept.cutoff == now - memory.duration && kept.rowLimit == 50_000_000)
        let longer = Retention(cutoff: now - .seconds(101 * 3600), rowLimit: 100_000_000, now: now).covering([memory])
        #expect(longer.cutoff == now - .seconds(101 * 3600) && longer.rowLimit == 100_000_000)
    }

    @Test("after gorush refused the notification makes none")
    func refused() async throws {
        let fixture = try SessionNodeFixture()
        try await fixture.withNode { running in
            let (account, device) = (try SessionAccount.sessionID(), SessionDevice(.firebase))
            _ = try await running.subscribe(account, device)
            fixture.gorush.refuse(device.token)
            let report = message(for: account)
            await fixture.monitor.report([report])
            let counters = running.node.counters
            try await eventually { counters.count(.notificationRefused) == 1 }
            try await eventually { running.node.delivery.waitingCount == 0 }
            await fixture.monitor.report([report])
            #expect(counters.count(.sessionDuplicate) == 1 && counters.count(.sessionNotification) == 1)
        }
    }

    enum End: CaseIterable {
        /// 14 days after its signature; its row is removed within a minute.
        case lapsed
        case unsubscribed
    }

    @Test("A subscription that ended while gorush was away is not notified", arguments: End.allCases)
    func ended(_ end: End) async throws {
        let fixture = try SessionNodeFixture()
        let life: Int64 = 14 * 86_400
        try await fixture.withNode { running in
            let (account, device) = (try SessionAccount.sessionID(), SessionDevice(.apns))
            let signedAt = end == .lapsed ? .now - life + 10 : Int64.now
            _ = try await running.subscribe(account, device, at: signedAt)
            fixture.gorush.setAway(true)
            await fixture.monitor.report([message(for: account)])
            let counters = running.node.counters
            try await eventually { counters.count(.postFailed) > 0 }
            switch end {
            case .lapsed: try await eventually { .now > signedAt + life }
            case .unsubscribed: _ = try await running.ask("/unsubscribe", account.json(account.unsubscription(device)))
            }
            fixture.gorush.setAway(false)
            _ = running.node.delivery.retry(nil)
            try await eventually { running.node.delivery.waitingCount == 0 }
            #expect(fixture.gorush.posted.isEmpty)
            // Notifications leave the queue before they leave the store.
            try await eventually { try await running.node.store.fetch(DeliveryStorage.waitingCount()) == 0 }
        }
    }
}
