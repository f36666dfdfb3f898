import CurlClient
import Delivery
import Dispatch
import Foundation
import GRDB
import NodeAPI
import NodeMetrics
import Core
import SessionProtocol
import SessionStandIns
import RateLimits
import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import PushNode
@testable import SessionServer
@testable import StoreSQLite

@Suite("Session: the HTTP endpoints")
struct SessionHTTPTests {
    private static let added = #"{"success":true,"added":true,"message":"Subscription successful"}"#
    private static let updated = #"{"success":true,"updated":true,"message":"Resubscription successful"}"#
    private static let removed = #"{"success":true,"removed":true,"message":"Device unsubscribed from push notifications"}"#

    private let fixture: SessionNodeFixture
    private let faults: StoreFaults
    private let account: SessionAccount
    private let device = SessionDevice()

    init() throws {
        fixture = try SessionNodeFixture()
        faults = StoreFaults(in: fixture.folder.path)
        account = try .sessionID()
    }

    /// The error code of a temporary refusal: status 503 with Retry-After.
    private func passingCode(
        _ node: SessionNodeFixture.Running, _ account: SessionAccount, _ device: SessionDevice
    ) async throws -> Int? {
        let refused = try await node.refused("/subscribe", account.json(account.subscription(device)))
        #expect(try #require(refused.retryAfter) > 0)
        return try code(refused.json)
    }

    private func code(_ json: String) throws -> Int? {
        struct Answer: Decodable { let error: Int? }
        return try JSONDecoder().decode(Answer.self, from: Data(json.utf8)).error
    }

    @Test func subscriptionsAreStoredAndMonitoredAndNotified() async throws {
        let device = SessionDevice(.apns)
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            #expect(try await node.subscribe(account, device) == Self.updated)
            #expect(fixture.monitor.accounts == [account.id])
            await fixture.monitor.report([message(for: account)])
            try await eventually { fixture.gorush.tokens == [device.token] }
            #expect(try await node.ask("/unsubscribe", account.json(account.unsubscription(device))) == Self.removed)
            #expect(fixture.monitor.accounts.isEmpty)
            await fixture.monitor.report([message(for: account)])
            #expect(node.node.counters.count(.sessionDropped(.unwanted)) == 1)
            #expect(node.node.counters.count(.sessionNotification) == 1)
        }
    }

    @Test func theStatusPageCountsItsDevicesAndHasItsLines() async throws {
        try await fixture.withNode { node async throws in
            for service in [PushService.apns, .apnsSandbox, .huawei] {
                #expect(try await node.subscribe(account, SessionDevice(service)) == Self.added)
            }
            // Read once in some seconds.
            try await eventually { await node.service?.registrations()?.registered == [.apn: 2, .huawei: 1] }
            let status = await node.node.observation.pageSource.status([])
            #expect(status.registrations?.total == 3)
            let lines = try #require(status.protocols.first { $0.name == node.session.name }).lines
            #expect(lines.contains { $0.name == "accounts" && $0.value == "1" })
            #expect(lines.contains { $0.name == "devices" && $0.value == "1 apns, 1 apns-sandbox, 1 huawei" })
        }
    }

    @Test func requestsContinueTheCallersTraceAndMessagesAreTraced() async throws {
        var sampling = TraceBuffer.Configuration()
        sampling.rate = 1
        let tracer = MessageTracer(sampling)
        let device = SessionDevice(.apns)
        try await fixture.withNode(tracer: tracer) { node async throws in
            let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
            let body = Array(account.json(account.subscription(device)).utf8)
            #expect(try await node.send("POST", "/subscribe", body, headers: [("traceparent", caller)]).status == 200)
            var traces: [EndedTrace] = []
            try await eventually {
                traces += tracer.take().traces
                return traces.count == 1
            }
            #expect(traces[0].parent == 0x00f0_67aa_0ba9_02b7 && traces[0].context.high == 0x4bf9_2f35_77b3_4da6)
            #expect(traces[0].source == .http && traces[0].kind == .registration && traces[0].protocol == .session)
            #expect(traces[0].times.spans.map(\.name) == ["decode", "commit", "answer"])
            await fixture.monitor.report([message(for: account)])
            try await eventually {
                traces += tracer.take().traces
                return traces.count == 2
            }
            #expect(traces[1].kind == .request && traces[1].parent == nil && traces[1].failure == nil)
            #expect(traces[1].times.spans.map(\.name) == ["decode", "decide", "commit", "queue", "post"])
            let metrics = node.node.counters.registry.exposition()
            for labels in [
                "stage=\"answered\",kind=\"registration\"", "stage=\"durable\",kind=\"request\"", "stage=\"accepted\",kind=\"request\"",
            ] {
                #expect(metrics.contains("waku_push_message_since_receipt_seconds_count{protocol=\"session\",\(labels)} 1\n"))
            }
        }
    }

    @Test func subscriptionsAndDeliveriesSurviveARestart() async throws {
        let (account, device) = (try SessionAccount.group(), SessionDevice())
        let report = message(for: account)
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            await fixture.monitor.report([report])
            try await eventually { fixture.gorush.tokens.count == 1 }
            for id in fixture.monitor.monitored.keys { fixture.monitor.remove(id) }
        }
        try await fixture.withNode { node async throws in
            #expect(fixture.monitor.accounts == [account.id])
            #expect(try await fixture.monitor.entries(of: Array(fixture.monitor.monitored.keys)).count == 1)
            #expect(try await node.subscribe(account, device) == Self.updated)
            await fixture.monitor.report([report])
            #expect(node.node.counters.count(.sessionDuplicate) == 1)
        }
    }

    @Test func anArrayIsAnsweredInItsOrder() async throws {
        let devices = [SessionDevice(), SessionDevice(.huawei)]
        try await fixture.withNode { node async throws in
            let body = "[\(account.json(account.subscription(devices[0]))),5,{},\(account.json(account.subscription(devices[1])))]"
            let answers = try JSONSerialization.jsonObject(with: Data(try await node.ask("/subscribe", body).utf8)) as? [[String: Any]]
            #expect(answers?.map { $0["added"] as? Bool } == [true, nil, nil, true])
            #expect(answers?.map { $0["error"] as? Int } == [nil, 1, 1, nil])
        }
    }

    @Test func forgedRequestsAndUnservedServicesAreRefused() async throws {
        try await fixture.withNode(configure: { $0.apnsTopic = "" }) { node async throws in
            let forged = account.json(account.subscription()).replacing(#""data":true"#, with: #""data":false"#)
            #expect(try await code(node.ask("/subscribe", forged)) == 4)
            for service in [PushService.apns, .apnsSandbox] {
                #expect(try await code(node.subscribe(account, SessionDevice(service))) == 2)
            }
            #expect(try await code(node.ask("/subscribe", "no JSON")) == 1)
            #expect(try await code(node.ask("/subscribe", "")) == 1)
            #expect(node.node.obstacles.isEmpty)
            #expect(node.node.findings.contains { $0.check == "session services" && $0.verdict == .warn })
        }
        try await fixture.withNode(endpoints: [EndpointRule(services: [.firebase])]) { node async throws in
            #expect(try await node.subscribe(account, SessionDevice(.firebase)) == Self.added)
            #expect(try await code(node.subscribe(account, SessionDevice(.huawei))) == 2)
        }
    }

    /// As while nodes, or their configurations, differ.
    @Test func notificationsForAppleDevicesWaitWithoutTheTopic() async throws {
        let account = try SessionAccount.sessionID()
        func forgetMonitored() { for id in fixture.monitor.monitored.keys { fixture.monitor.remove(id) } }
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, SessionDevice(.apns)) == Self.added)
        }
        forgetMonitored()
        try await fixture.withNode(configure: { $0.apnsTopic = "" }) { node async throws in
            await fixture.monitor.report([message(for: account)])
            #expect(node.node.counters.count(.sessionNotification) == 1)
            try await eventually {
                node.node.findings.first { $0.check == "outbox" }?.text.hasPrefix("1 notifications wait") == true
            }
            #expect(fixture.gorush.posted.isEmpty)
        }
        forgetMonitored()
        try await fixture.withNode { _ async throws in
            try await eventually { fixture.gorush.posted.map(\.apnTopic) == ["com.session"] }
        }
    }

    @Test func bodiesOfUpTo100000BytesAreRead() async throws {
        try await fixture.withNode { node async throws in
            let body = account.json(account.subscription())
            func padded(_ count: Int) -> String { body + String(repeating: " ", count: count - body.utf8.count) }
            #expect(try await node.ask("/subscribe", padded(100_000)) == Self.added)
            #expect(try await code(node.ask("/subscribe", padded(100_001))) == 1)
            #expect(try await code(node.ask("/subscribe", padded(400_000))) == 1)
        }
    }

    @Test func otherPathsAndMethodsHaveTheirStatus() async throws {
        try await fixture.withNode { node async throws in
            #expect(try await node.send("GET", "/healthz").status == 200)
            for (method, path) in [("POST", "/"), ("GET", "/nothing"), ("POST", "/subscribe/x")] {
                #expect(try await node.send(method, path).status == 404)
            }
            for (method, path) in [("GET", "/subscribe"), ("PUT", "/unsubscribe"), ("GET", "/oxen/v4/lsrpc"), ("POST", "/healthz")] {
                #expect(try await node.send(method, path).status == 405)
            }
            for path in ["/subscribe", "/%73ubscribe"] {
                let response = try await node.send("GET", path)
                #expect(response.status == 405 && response.header("allow") == "POST")
            }
        }
    }

    @Test func pagesOfOtherOriginsMaySubscribe() async throws {
        try await fixture.withNode { node async throws in
            for path in ["/subscribe", "/unsubscribe", "/%73ubscribe"] {
                let preflight = try await node.send("OPTIONS", path)
                #expect(preflight.status == 204 && preflight.header("access-control-allow-origin") == "*")
                #expect(preflight.header("access-control-allow-headers") == "Content-Type")
                #expect(preflight.header("access-control-allow-methods") == "POST")
                #expect(try await node.send("POST", path, Array("{}".utf8)).header("access-control-allow-origin") == "*")
            }
            for path in ["/oxen/v4/lsrpc", "/healthz", "/nothing", "/web-push"] {
                #expect(try await node.send("OPTIONS", path).header("access-control-allow-origin") == (path == "/web-push" ? "*" : nil))
            }
            // Without Web Push.
            #expect(try await node.send("GET", "/web-push").status == 404)
        }
    }

    @Test func newSubscriptionsAreLimited() async throws {
        try await fixture.withNode(configure: { $0.limits.installationsByKey = 1 }) { node async throws in
            // Later signatures would make room.
            let (device, signed) = (SessionDevice(), Int64.now)
            #expect(try await node.subscribe(account, device, at: signed) == Self.added)
            #expect(try await code(node.subscribe(account, SessionDevice(), at: signed)) == 4)
            #expect(try await node.subscribe(account, device, at: signed) == Self.updated)
            var limits = fixture.limits
            limits.registrationCount = 1
            node.session.replaceLimits(limits)
            #expect(node.node.findings.contains { $0.check == "registrations of session" && $0.verdict == .warn })
            #expect(try await passingCode(node, .group(), SessionDevice()) == 4)
            node.session.replaceLimits(fixture.limits)
            #expect(!node.node.findings.contains { $0.check == "registrations of session" })
            #expect(try await node.subscribe(account, SessionDevice()) == Self.added)
        }
    }

    @Test func anArrayWithAnEntryThatMayPassIs503WithAllAnswers() async throws {
        try await fixture.withNode(configure: { $0.limits.registrationCount = 1 }) { node async throws in
            func body(_ devices: [SessionDevice]) -> String {
                "[\(devices.map { account.json(account.subscription($0)) }.joined(separator: ",")),5]"
            }
            let (first, second) = (SessionDevice(), SessionDevice())
            let refused = try await node.refused("/subscribe", body([first, second]))
            let answers = try JSONSerialization.jsonObject(with: Data(refused.json.utf8)) as? [[String: Any]]
            #expect(answers?.map { $0["added"] as? Bool } == [true, nil, nil])
            #expect(answers?.map { $0["error"] as? Int } == [nil, 4, 1])
            #expect(refused.retryAfter == 60)
            // Accepted entries may be repeated. Without a temporary error the status is 200.
            #expect(try await node.ask("/subscribe", body([first])).hasPrefix("[\(Self.updated),"))
            // Inside an onion request 503 is the inner code.
            let body = Array(account.json(account.subscription(second)).utf8)
            let request = try onion.request("POST", "/subscribe", body: body, encryption: .xChaCha20)
            let response = try await node.post("/oxen/v4/lsrpc", request.body)
            #expect(response.status == 200)
            let answer = String(decoding: request.box.open(response.body[...]) ?? [], as: UTF8.self)
            #expect(answer.contains(#"{"code":503,"headers":{"content-type":"application/json","retry-after":"60"}}"#))
        }
    }

    @Test func aDrainingNodeTakesNoSubscriptions() async throws {
        try await fixture.withNode { node async throws in
            node.node.base.drain.isOn = true
            #expect(try await passingCode(node, account, SessionDevice()) == 5)
            node.node.base.drain.isOn = false
            #expect(try await node.subscribe(account, SessionDevice()) == Self.added)
        }
    }

    /// The operator is told that no subscription follows.
    @Test func aSubscriptionThatWaitsForABusyStoreIsRefusedOnceTheNodeDrains() async throws {
        try await fixture.withNode { node async throws in
            let service = try #require(node.service)
            let commits = SubscriptionCommits(
                service.node, service.limits, services: service.services, monitor: fixture.monitor, timeout: .seconds(60),
                sodium: fixture.sodium, pendingByteLimit: 1 << 20)
            let isFree = DispatchSemaphore(value: 0)
            let busy = StoreCommand<Void>.read([]) { _ in
                isFree.wait()
                return .done(())
            }
            node.node.store.submit([busy]) { _ in }
            let answers = await withCheckedContinuation { continuation in
                commits.commit([.subscribe(account.subscription(device))], of: SenderNetwork(nil), byteCount: 600) {
                    continuation.resume(returning: $0)
                }
                node.node.base.drain.isOn = true
                isFree.signal()
            }
            #expect(answers == [.failed(.draining)])
            node.node.base.drain.isOn = false
            #expect(try await node.subscribe(account, device) == Self.added)
        }
    }

    // MARK: The store

    @Test func aStoreThatFailsIsError5AndKeepsNothing() async throws {
        try await fixture.withNode { node async throws in
            faults.add(.code(13), to: .write)
            #expect(try await passingCode(node, account, device) == 5)
            #expect(fixture.monitor.accounts.isEmpty)
            faults.clear()
            #expect(try await node.subscribe(account, device) == Self.added)
        }
    }

    @Test func aStoreThatHangsIsError3AndMayHaveKeptTheSubscription() async throws {
        try await fixture.withNode(configure: { $0.storeTimeout = .milliseconds(50) }) { node async throws in
            faults.add(.stall, to: .sync)
            let answer = try await passingCode(node, account, device)
            faults.clear()
            #expect(answer == 3)
            try await eventually { fixture.monitor.accounts == [account.id] }
        }
    }

    @Test func messagesWaitForAStoreThatFails() async throws {
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            faults.add(.code(13), to: .write)
            async let reported: Void = fixture.monitor.report([message(for: account)])
            try await eventually { node.node.store.failure != nil }
            #expect(fixture.gorush.tokens.isEmpty)
            faults.clear()
            await reported
            try await eventually { fixture.gorush.tokens == [device.token] }
        }
    }

    /// Two batches are being committed while a third is prepared.
    @Test func reportsBehindAStoreThatHangsWaitInTheirOrder() async throws {
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            let counters = node.node.counters
            let reports = ["a", "b", "c"].map { message(for: account, hash: String(repeating: $0, count: 40)) }
            faults.add(.stall, to: .sync)
            await fixture.monitor.take([reports[0]])
            await fixture.monitor.take([reports[1]])
            let hasThirdRoom = Flag()
            let third = Task {
                await fixture.monitor.take([reports[2]])
                hasThirdRoom.raise()
            }
            try await eventually { counters.count(.sessionMessage) == 3 }
            #expect(try await staysDown(hasThirdRoom, on: node))
            #expect(counters.count(.sessionNotification) == 0 && fixture.gorush.posted.isEmpty)
            faults.clear()
            await third.value
            await fixture.monitor.settle()
            #expect(counters.count(.sessionNotification) == 3)
            try await eventually { fixture.gorush.posted.count == 3 }
            #expect(fixture.gorush.posted.map(\.id) == ids(of: reports, account, device, node))
        }
    }

    /// The next batch is stored and posted before a batch that is retried.
    @Test func aBatchThatIsTriedAgainDoesNotHoldUpTheNext() async throws {
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            let reports = ["a", "b"].map { message(for: account, hash: String(repeating: $0, count: 40)) }
            faults.add(.code(13), to: .write)
            await fixture.monitor.take([reports[0]])
            try await eventually { node.node.store.failure != nil }
            faults.clear()
            await fixture.monitor.take([reports[1]])
            await fixture.monitor.settle()
            try await eventually { fixture.gorush.posted.count == 2 }
            #expect(fixture.gorush.posted.map(\.id) == ids(of: reports.reversed(), account, device, node))
        }
    }

    /// With many devices the notifications take much memory, so the next batch waits.
    @Test func aBatchOfManyNotificationsIsAloneOnItsWay() async throws {
        let devices = (0..<50).map { _ in SessionDevice() }
        try await fixture.withNode { node async throws in
            let forms = devices.map { account.json(account.subscription($0)) }
            #expect(try await node.ask("/subscribe", "[\(forms.joined(separator: ","))]").contains("success"))
            let counters = node.node.counters
            faults.add(.stall, to: .sync)
            await fixture.monitor.take([message(for: account)])
            let hasRoom = Flag()
            let many = Task {
                await fixture.monitor.take((0..<50).map { _ in message(for: account) })
                hasRoom.raise()
            }
            try await eventually { counters.count(.sessionMessage) == 51 }
            #expect(try await staysDown(hasRoom, on: node))
            faults.clear()
            await many.value
            await fixture.monitor.settle()
            #expect(counters.count(.sessionNotification) == 51 * 50)
        }
    }

    @Test func aLimitIsAskedOnceForAMessageThatIsTriedAgain() async throws {
        try await fixture.withNode(configure: { $0.limits.notificationsByTarget = RateLimit(1, per: .hour, burst: 1) }) {
            node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            faults.add(.code(13), to: .write)
            await fixture.monitor.take([message(for: account)])
            try await eventually { node.node.store.failure != nil }
            faults.clear()
            await fixture.monitor.report([message(for: account)])
            // The second message was refused by the limit; the first had been admitted.
            try await eventually { fixture.gorush.tokens == [device.token] }
            #expect(node.node.counters.count(.sessionNotification) == 1)
        }
    }

    @Test func aServerWithoutRoomForASubscriptionLeavesItToTheOthers() async throws {
        try await fixture.withNode(configure: { $0.limits.notificationsByTarget = RateLimit(1, per: .hour, burst: 1) }) {
            node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            let real = message(for: account)
            await fixture.monitor.report([message(for: account), message(for: account), real], by: [1])
            #expect(node.node.counters.count(.sessionNotification) == 1)
            // The same message, by another server of the swarm.
            await fixture.monitor.report([real], by: [2])
            await fixture.monitor.report([real], by: [3])
            #expect(node.node.counters.count(.sessionNotification) == 2)
            let refused = try #require(SessionLimits.counters?[.notificationsByTarget])
            #expect(node.node.counters.count(refused) == 2)
        }
    }

    /// Whether a flag stays down during as many reads as preparing a few thousand notifications takes.
    private func staysDown(_ flag: Flag, on node: SessionNodeFixture.Running) async throws -> Bool {
        for _ in 0..<3000 where !flag.isRaised { _ = try await node.node.store.fetch(DeliveryStorage.waitingCount()) }
        return !flag.isRaised
    }

    private func ids(
        of reports: [NotifyMessage], _ account: SessionAccount, _ device: SessionDevice, _ node: SessionNodeFixture.Running
    ) -> [String] {
        let name = Subscriptions(node.node.store.sealer).name(
            of: account.id, SubscriberDevice(service: device.service, token: device.token))
        return reports.compactMap { DeliveryID(bytes: MessageRules.deliveryName(rowName: name, hash: $0.hash))?.notificationID }
    }

    @Test func aNodeThatStopsDoesNotWaitForAStoreThatFailsAndLogsWhatItDrops() async throws {
        let log = RecordedLog()
        let (report, counters) = try await fixture.withNode(logger: log.logger) { node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            faults.add(.code(13), to: .write)
            let report = Task { await fixture.monitor.report([message(for: account), message(for: account)]) }
            try await eventually { node.node.store.failure != nil }
            return (report, node.node.counters)
        }
        await report.value
        #expect(counters.count(.sessionDropped(.notStored)) == 2)
        #expect(log.lines.filter { $0.contains("dropped reports") } == ["error dropped reports that could not be stored count=2"])
    }

    @Test func bodiesThatWaitForTheStoreShareABudget() async throws {
        try await fixture.withNode(configure: { $0.pendingByteLimit = 1500 }) { node async throws in
            let forms = (0..<2).map { _ in account.json(account.subscription(SessionDevice())) }
            let answers = try await node.refused("/subscribe", "[\(forms.joined(separator: ","))]")
            #expect(answers.json.components(separatedBy: #""error":3"#).count == 3)
            #expect(answers.json.contains("too many requests at present"))
            // Refused and stored bodies do not count against the limit.
            for form in forms { #expect(try await node.ask("/subscribe", form) == Self.added) }
        }
    }

    /// Every turn comes too late.
    @Test func requestsThatWaitedTooLongForATurnAreRefusals() async throws {
        try await fixture.withNode(configure: { $0.storeTimeout = .zero }) { node async throws in
            let form = account.json(account.subscription(SessionDevice()))
            #expect(try await node.post("/subscribe", Array(form.utf8)).status == 503)
            let request = try onion.request("POST", "/subscribe", body: Array(form.utf8), encryption: .xChaCha20)
            #expect(try await node.post("/oxen/v4/lsrpc", request.body).status == 503)
            let totals = try #require(node.service).limits.limiter.refusals.totals
            #expect(totals.map(\.key.limit) == [.httpRequests] && totals.map(\.value) == [2])
        }
    }

    // MARK: Damaged rows

    /// Subscribes devices, and damages the row of the first one.
    private func subscribeWithOneUnreadableRow(
        _ account: SessionAccount, _ devices: [SessionDevice], _ node: SessionNodeFixture.Running
    ) async throws {
        for device in devices { #expect(try await node.subscribe(account, device) == Self.added) }
        let row = try #require(fixture.monitor.monitored.keys.map(\.rawValue).min())
        let damage = Mutation(SessionStorage.subscription, .updateAny([SessionStorage.name], where: [.equal(.id)]))
        try await node.node.store.commit(.change([damage(.integer(5), .integer(row))]))
    }

    @Test func anUnreadableRowTakesNoOtherDeviceWithIt() async throws {
        let devices = [SessionDevice(), SessionDevice()]
        try await fixture.withNode { node async throws in
            try await subscribeWithOneUnreadableRow(account, devices, node)
            await fixture.monitor.report([message(for: account)])
            try await eventually { fixture.gorush.tokens == [devices[1].token] }
        }
    }

    @Test func aMessageWithAnUnreadableRowWaitsForTheStore() async throws {
        let devices = [SessionDevice(), SessionDevice()]
        try await fixture.withNode { node async throws in
            try await subscribeWithOneUnreadableRow(account, devices, node)
            faults.add(.code(13), to: .write)
            await fixture.monitor.take([message(for: account)])
            try await eventually { node.node.store.failure != nil }
            faults.clear()
            try await eventually { fixture.gorush.tokens == [devices[1].token] }
        }
    }

    @Test func aMessageWhoseRowsCannotBeReadWaitsForTheStore() async throws {
        let log = RecordedLog()
        try await fixture.withNode(logger: log.logger) { node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            // It is left to the commits one by one, which fail as well.
            faults.add(.code(13), to: [.read, .write])
            await fixture.monitor.take([message(for: account)])
            try await eventually { log.contains("failed to store messages of storage servers") }
            faults.clear()
            try await eventually { fixture.gorush.tokens == [device.token] }
        }
    }

    @Test func aMessageThatCannotBeStoredIsGivenUpAndOthersAreNot() async throws {
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, device) == Self.added)
            let (refused, stored) = (message(for: account), message(for: account))
            let store = try #require(node.node.store as? SQLiteStore)
            let name = Subscriptions(store.sealer).name(
                of: account.id, SubscriberDevice(service: device.service, token: device.token))
            let delivery = hexString(MessageRules.deliveryName(rowName: name, hash: refused.hash))
            try await store.pool.write { db in
                // The index expression overflows only for this row.
                try db.execute(
                    sql: "CREATE INDEX refusal ON outbox (CASE delivery WHEN x'\(delivery)' THEN abs(-9223372036854775808) END)")
            }
            await fixture.monitor.report([refused, stored])
            #expect(node.node.counters.count(.sessionDropped(.notStored)) == 1)
            try await eventually { fixture.gorush.tokens == [device.token] }
        }
    }

    // MARK: Messages

    @Test func oldAndExpiredMessagesAreDroppedAndCounted() async throws {
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, SessionDevice()) == Self.added)
            await fixture.monitor.report([
                message(for: account, storedAt: (.now - .day) * 1000), message(for: account, expiresAt: (.now - 1) * 1000),
                message(for: account, storedAt: (.now + 10 * .day) * 1000, expiresAt: .max),
            ])
            await fixture.monitor.take([message(for: account)], receivedAt: (.now - 601) * 1000)
            await fixture.monitor.settle()
            let counters = node.node.counters
            #expect(counters.count(.sessionDropped(.tooOld)) == 1)
            #expect(counters.count(.sessionDropped(.expired)) == 1)
            // The senders' times do not matter.
            #expect(counters.count(.sessionNotification) == 2)
            fixture.monitor.tell(.dropped(.badHash))
            #expect(counters.count(.sessionDropped(.badHash)) == 1)
        }
    }

    @Test func aDeadTokenEndsItsSubscriptionsAndTheirMonitoring() async throws {
        let accounts = [try SessionAccount.sessionID(), try .group()]
        let device = SessionDevice(.apns)
        try await fixture.withNode { node async throws in
            for account in accounts { #expect(try await node.subscribe(account, device) == Self.added) }
            let ids = Array(fixture.monitor.monitored.keys)
            fixture.gorush.end(device.token)
            await fixture.monitor.report([message(for: accounts[0])])
            let subscriptions = Subscriptions(node.node.store.sealer)
            try await eventually {
                try accounts.allSatisfy {
                    try node.node.store.read(Subscriptions.ofAccount(subscriptions.accountHash($0.id))).isEmpty
                }
            }
            // Noticed at the next renewal.
            #expect(try await fixture.monitor.entries(of: ids).isEmpty)
            #expect(fixture.monitor.monitored.isEmpty)
            #expect(try await node.subscribe(accounts[0], device) == Self.added)
        }
    }

    @Test func aDeadTokenThatIsSubscribedAgainWhileAMessageIsPostedEndsTheNewSubscription() async throws {
        let (account, device) = (try SessionAccount.sessionID(), SessionDevice(.apns))
        try await fixture.withNode { node async throws in
            #expect(try await node.subscribe(account, device, at: .now - 60) == Self.added)
            fixture.gorush.end(device.token)
            fixture.gorush.whenPosted { _ = try? await node.subscribe(account, device) }
            await fixture.monitor.report([message(for: account)])
            let counters = node.node.counters
            try await eventually { counters.count(.notificationAccepted) == 1 }
            #expect(fixture.gorush.tokens == [device.token, device.token])
            #expect(counters.count(.tokenFailureStale) == 1 && counters.count(.tokenRemoved) == 1)
        }
    }

    // MARK: Operating

    @Test func theNodeIsNotReadyWithoutStorageServersOnceThereAreSubscriptions() async throws {
        try await fixture.withNode { node async throws in
            #expect(node.node.obstacles.isEmpty)
            var figures = fixture.monitor.figures
            figures.connectedServers = 0
            fixture.monitor.figures = figures
            #expect(node.node.obstacles.isEmpty)
            figures.subscriptions = 1
            fixture.monitor.figures = figures
            #expect(node.node.obstacles == ["session: 0 of 4 storage servers connected"])
            node.node.reloadFiles()
            #expect(fixture.monitor.reloads == 1)
        }
    }

    // MARK: Onion requests

    private var onion: OnionClient { OnionClient(serverKey: fixture.onionKey.publicKey, sodium: fixture.sodium) }

    @Test(arguments: OnionEncryption.allCases) func onionRequestsReachTheEndpoints(encryption: OnionEncryption) async throws {
        try await fixture.withNode { node async throws in
            func ask(_ request: OnionClient.Request) async throws -> String {
                let response = try await node.post("/oxen/v4/lsrpc", request.body)
                #expect(response.status == 200)
                return String(decoding: request.box.open(response.body[...]) ?? [], as: UTF8.self)
            }
            func ask(_ method: String, _ endpoint: String, _ body: String) async throws -> String {
                try await ask(onion.request(method, endpoint, body: Array(body.utf8), encryption: encryption))
            }
            let answer = try await ask("POST", "/subscribe", account.json(account.subscription()))
            #expect(answer.contains(#"{"code":200,"headers":{"content-type":"application/json"}}"#))
            #expect(answer.contains(Self.added))
            #expect(try await ask("GET", "/subscribe", "").contains(#""code":405"#))
            #expect(try await ask("POST", "/oxen/v4/lsrpc", "").contains(#""code":404"#))
            #expect(
                try await ask(onion.request(Array("i5e".utf8), encryption: encryption, named: encryption == .aesGCM ? nil : "xchacha20"))
                    .contains(#""code":400"#))
            // The others were not registrations.
            let times = node.node.counters.registry.histogram(
                .sinceReceipt, ProtocolLabel.session, StageLabel.answered, KindLabel.registration)
            #expect(times.cumulativeCounts.last == 1)
        }
    }

    @Test func requestsThatWereSignedTooLongAgoChangeNothing() async throws {
        try await fixture.withNode { node async throws in
            #expect(try code(await node.subscribe(account, device, at: .now - 15 * .day)) == 4 && fixture.monitor.accounts.isEmpty)
            #expect(try await node.subscribe(account, device, at: .now - 2 * .day) == Self.added)
            let ended = try await node.ask("/unsubscribe", account.json(account.unsubscription(device, at: .now - .day - 60)))
            #expect(try code(ended) == 4 && fixture.monitor.accounts == [account.id])
        }
    }

    @Test func undecryptableRequestsGet400AndTooLargeOnes413() async throws {
        try await fixture.withNode { node async throws in
            let response = try await node.post("/oxen/v4/lsrpc", Array("nonsense".utf8))
            #expect(response.status == 400)
            #expect(String(decoding: response.body, as: UTF8.self).count { $0 == "\n" } == 1)
            let large = try onion.request("POST", "/nothing", body: [UInt8](repeating: 0x78, count: 1 << 20), encryption: .xChaCha20)
            #expect(try await node.post("/oxen/v4/lsrpc", large.body).status == 200)
            #expect(try await node.post("/oxen/v4/lsrpc", [UInt8](repeating: 0, count: (10 << 20) + 1)).status == 413)
            let metrics = node.node.counters.registry.exposition()
            for (result, count) in [("malformed", 1), ("answered", 1), ("too_large", 1)] {
                #expect(metrics.contains("waku_push_session_onion_requests_total{result=\"\(result)\"} \(count)\n"), "\(result)")
            }
        }
    }

    @Test func aBodyOfMoreThanHalfOfTheRoomIsRefused() async throws {
        try await fixture.withNode(configure: { $0.largeBodyByteCount = 2 << 20 }) { node async throws in
            #expect(try await node.post("/oxen/v4/lsrpc", [UInt8](repeating: 0, count: 2 << 20)).header("retry-after") == "10")
            #expect(try await node.post("/oxen/v4/lsrpc", [UInt8](repeating: 0, count: 1 << 20)).status == 400)
        }
    }

    @Test(arguments: ["", "Connection: close\r\n"]) func connectionsOfHTTP10CloseAfterTheResponse(header: String) async throws {
        try await fixture.withNode { node async throws in
            let connection = try RawConnection(
                port: UInt16(node.service?.httpPort ?? 0), sending: "GET /healthz HTTP/1.0\r\n\(header)\r\n")
            try await eventually { connection.isClosed }
        }
    }

    /// One large body fits at a time, and the first one is that of a client that does not send the rest.
    @Test func largeBodiesWaitForRoomAndOthersNeedNone() async throws {
        try await fixture.withNode(configure: { $0.largeBodyByteCount = 250_000 }) { node async throws in
            let port = UInt16(node.service?.httpPort ?? 0)
            let head = "POST /subscribe HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n"
            var slow: RawConnection? = try RawConnection(port: port, sending: head + String(repeating: " ", count: 40_000))
            let large = account.json(account.subscription()) + String(repeating: " ", count: 90_000)
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<10 { group.addTask { try await node.ask("/subscribe", large) } }
                #expect(try await node.subscribe(account, SessionDevice()) == Self.added)
                withExtendedLifetime(slow) {}
                slow = nil
                var answers: [String: Int] = [:]
                for try await answer in group { answers[answer, default: 0] += 1 }
                #expect(answers == [Self.added: 1, Self.updated: 9])
            }
        }
    }
}
