import Foundation
import Delivery
import NodeAPI
import Core
import SessionProtocol
import Storage
import Testing
import WakuCrypto

@testable import SessionServer

@Suite("Session: requests to gorush")
struct SessionContentTests {
    private func posted(
        _ service: PushService, carriesData: Bool = true, namespace: Int16 = 0, settings: NotificationSettings = .none
    ) throws -> NSDictionary {
        let bytes: [UInt8] = [carriesData ? 1 : 0, UInt8(truncatingIfNeeded: namespace >> 8), UInt8(truncatingIfNeeded: namespace)]
        let content = SessionContent(try SessionPayload(parsing: bytes + [1, 2, 3]), service: service, apnsTopic: "com.session")
        let notification = Delivery.Notification(
            id: "n1", platform: service.platform, deviceToken: DeviceToken("token"), apnTopic: "com.session", isForSandbox: true,
            expires: Timestamp(rawValue: 90_000_000_000), content: content)
        let body = NotificationFormat(.rfc, settings: settings).encode(
            [notification, notification], at: Timestamp(rawValue: 30_000_000_000))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: [NSDictionary]])
        let notifications = try #require(object["notifications"])
        #expect(notifications.count == 2)
        return notifications[0]
    }

    private func json(_ text: String) throws -> NSDictionary {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary)
    }

    @Test(arguments: [PushService.apns, .apnsSandbox]) func apnsGetsAnAlertWithTheTopic(service: PushService) throws {
        let development = service == .apnsSandbox ? #""development": true,"# : ""
        let expected = try json(
            """
            {"notif_id": "n1", "tokens": ["token"], "platform": 1, "collapse_id": "n1", "topic": "com.session", "title": "Session",
             "message": "You've got a new message", "badge": 1, "sound": "default", "mutable_content": true, "category": "SECRET",
             "push_type": "alert", "priority": "high", \(development) "data": {"enc_payload": "AQID", "spns": 1}}
            """)
        #expect(try posted(service) == expected)
    }

    /// The app needs all members: the profile replaces only the id. The rest differs by the encrypted content and its length.
    @Test(arguments: PushService.ofGorush) func theProfilePrivateReplacesOnlyTheID(service: PushService) throws {
        func body(_ profile: PayloadProfile, sealed: [UInt8]) throws -> String {
            let content = SessionContent(
                try SessionPayload(parsing: [1, 0, 0] + sealed), service: service, apnsTopic: "com.session")
            let notification = Delivery.Notification(
                id: DeliveryID(hashing: sealed).notificationID, platform: service.platform, deviceToken: DeviceToken("token"),
                apnTopic: "com.session", content: content)
            let format = NotificationFormat(profile, ids: NotificationIDCipher(identity: .generate()))
            return String(decoding: format.encode([notification], at: Timestamp(rawValue: 0)), as: UTF8.self)
        }
        let ids = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/
        var templates: Set<String> = []
        for number in UInt8(0)..<50 {
            let sealed = [UInt8](repeating: number, count: 256)
            let posted = try body(.private, sealed: sealed)
            let (ownID, text) = (DeliveryID(hashing: sealed).notificationID, Data(sealed).base64EncodedString())
            #expect(!posted.contains(ownID) && posted.contains(text))
            #expect(posted.replacing(ids, with: ownID) == (try body(.combined, sealed: sealed)))
            templates.insert(posted.replacing(ids, with: "ID").replacing(text, with: "PAYLOAD"))
        }
        #expect(templates.count == 1)
    }

    @Test func webPushGetsThePayloadUnlessItIsTooLong() throws {
        let content = SessionContent(try SessionPayload(parsing: [1, 0, 0, 1, 2, 3]), service: .webPush, apnsTopic: "com.session")
        let json = try #require(content.webPushContent(id: "n1"))
        #expect(
            String(decoding: json.whole, as: UTF8.self) == #"{"v":1,"protocol":"session","id":"n1","enc_payload":"AQID","spns":1}"#)
        #expect(String(decoding: json.truncated, as: UTF8.self) == #"{"v":1,"protocol":"session","id":"n1","spns":1,"truncated":true}"#)
        #expect(json.urgency == .high)
    }

    @Test func firebaseAndHuaweiGetDataAlone() throws {
        #expect(
            try posted(.firebase)
                == json(
                    #"{"notif_id":"n1","tokens":["token"],"platform":2,"priority":"high","data":{"enc_payload":"AQID","spns":"1"}}"#))
        #expect(
            try posted(.huawei, carriesData: false)
                == json(
                    #"{"notif_id":"n1","tokens":["token"],"platform":3,"priority":"normal","huawei_data":"{\"enc_payload\":\"AQID\",\"spns\":\"1\"}"}"#
                ))
    }

    @Test(arguments: [(Int16(0), true, "high"), (11, true, "high"), (1, true, "normal"), (-10, true, "normal"), (0, false, "normal")])
    func priorityIsHighForDataInNamespaces0And11(namespace: Int16, carriesData: Bool, priority: String) throws {
        for service in [PushService.firebase, .huawei] {
            #expect(try posted(service, carriesData: carriesData, namespace: namespace)["priority"] as? String == priority)
        }
    }

    private static let everything: NotificationStyle = {
        var style = NotificationStyle(body: "Another text")
        style.title = .localized(key: "K")
        (style.sound, style.badge, style.category, style.channel) = ("ping.caf", 7, "C", "messages")
        (style.isMutable, style.isForSandbox, style.interruptionLevel, style.priority) = (false, false, .passive, .normal)
        (style.thread, style.collapse, style.timeToLive, style.reportTag) = (.chat, .never, .remaining, "waku")
        style.deepLink = DeepLinkTemplate("app://x")
        return style
    }()

    @Test(arguments: PushService.allCases) func settingsThatDoNotNameSessionChangeNothing(service: PushService) throws {
        let settings = NotificationSettings([NotificationSettings.Rule(Self.everything)])
        #expect(try posted(service, settings: settings) == posted(service))
    }

    /// The members stay; only delivery settings add some.
    @Test func settingsForSessionAddOnlyWhatConcernsDelivery() throws {
        var rule = NotificationSettings.Rule(Self.everything)
        rule.protocols = ["session"]
        let settings = NotificationSettings([rule])
        func added(_ service: PushService) throws -> NSDictionary {
            let (plain, other) = (try posted(service), try posted(service, settings: settings))
            for (name, value) in plain where name as? String != "collapse_id" {
                #expect((other[name] as? NSObject) == (value as? NSObject), "\(name)")
            }
            let more = try #require(other.mutableCopy() as? NSMutableDictionary)
            more.removeObjects(forKeys: plain.allKeys)
            return more
        }
        #expect(try added(.apns) == json(#"{"expiration": 90}"#))
        #expect(try posted(.apns, settings: settings)["collapse_id"] == nil)
        #expect(try added(.firebase) == json(#"{"time_to_live": 60, "android": {"priority": "high", "ttl": "60s"}}"#))
        #expect(try added(.huawei) == json(#"{"huawei_collapse_key": -1, "huawei_ttl": "60s", "bi_tag": "waku"}"#))
    }

    @Test func aPayloadInTheOutboxIsReadBack() throws {
        for namespace in [Int16.min, -1, 0, 11, .max] {
            let number = UInt16(bitPattern: namespace)
            let payload = try SessionPayload(parsing: [1, UInt8(number >> 8), UInt8(number & 255), 7, 8])
            #expect(payload.namespace == namespace && payload.carriesData && payload.sealed == [7, 8])
            #expect(try SessionPayload(parsing: payload.encoded()) == payload)
        }
        #expect(throws: UnexpectedValue.self) { try SessionPayload(parsing: [1, 0, 0]) }
    }
}

@Suite("Session: checks")
struct SessionChecksTests {
    private func verdicts(
        _ change: (inout SubscriptionMonitor.Figures) -> Void, unserved: Set<PushService> = [], hasGorush: Bool = true
    ) -> [String: Finding.Verdict] {
        var figures = SubscriptionMonitor.Figures()
        (figures.knownServers, figures.connectedServers, figures.knownSwarms, figures.reachableSwarms) = (10, 10, 5, 5)
        change(&figures)
        let findings = SessionChecks.findings(figures, unserved: unserved, hasGorush: hasGorush, isListening: true)
        return Dictionary(uniqueKeysWithValues: findings.map { ($0.check, $0.verdict) })
    }

    @Test func itIsNotReadyBeforeItListens() {
        let findings = SessionChecks.findings(SubscriptionMonitor.Figures(), unserved: [], hasGorush: true, isListening: false)
        #expect(findings.map(\.verdict) == [.fail])
    }

    @Test func aHealthyServerHasNoComplaints() {
        #expect(verdicts { _ in } == ["session": .ok, "session swarms": .ok, "session services": .ok])
        #expect(verdicts { $0.isOxendConnected = true }["session oxend"] == .ok)
    }

    @Test func swarmsWithoutSubscriptionsNeedNotBeReachable() {
        #expect(verdicts { $0.reachableSwarms = 4 }["session swarms"] == .ok)
        #expect(verdicts { ($0.reachableSwarms, $0.subscriptions, $0.monitoredSubscriptions) = (4, 7, 7) }["session swarms"] == .ok)
    }

    @Test func problemsAreReported() {
        #expect(verdicts { ($0.connectedServers, $0.subscriptions) = (0, 1) }["session"] == .fail)
        #expect(verdicts { $0.connectedServers = 0 }["session"] == .warn)
        #expect(verdicts { ($0.reachableSwarms, $0.subscriptions) = (4, 1) }["session swarms"] == .warn)
        #expect(verdicts { $0.isOxendConnected = false }["session oxend"] == .warn)
        #expect(verdicts({ _ in }, unserved: [.huawei])["session services"] == .warn)
        // On purpose.
        #expect(verdicts({ _ in }, unserved: Set(PushService.ofGorush), hasGorush: false)["session services"] == .ok)
    }

    @Test func theRemedyForUnreachableSwarmsNamesTheLimitOfOpenFilesOnlyIfThatIsTheCause() throws {
        var figures = SubscriptionMonitor.Figures()
        (figures.knownServers, figures.connectedServers, figures.knownSwarms, figures.reachableSwarms) = (10, 3, 5, 2)
        figures.subscriptions = 1
        func remedy() throws -> String {
            let findings = SessionChecks.findings(figures, unserved: [], hasGorush: true, isListening: true)
            return try #require(findings.first { $0.check == "session swarms" }?.remedy)
        }
        #expect(try remedy().contains("may connect to storage servers"))
        figures.connectionLimit = 3
        #expect(try remedy().hasSuffix("it allows connections to 3 of 10 storage servers"))
    }
}
