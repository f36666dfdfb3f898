import Delivery
import Core
import StatusProtocol
import Testing

/// Without settings, the bytes that gorush has always got.
struct UnsetSettingsTests {
    private static let key = String(repeating: "ab", count: 64)
    private static let statusData = #""encryptedMessage":"0xdead00ef","chatId":"0xc0ff","publicKey":"0x\#(key)""#
    private static let publishedData = #""chat_id":"0xc0ff","message":"0xdead00ef","installation_ids":["installation-1"]"#
    private static let apnStart = #"{"notif_id":"n1","tokens":["token-1"],"platform":1,"message":"#
    private static let firebaseStart = #"{"notif_id":"n1","tokens":["token-1"],"platform":2,"message":"#
    private static let additions = #""content_available":true,"sound":"default","priority":"high","push_type":"alert""#

    static let rows: [(PayloadProfile, Platform, String)] = [
        (
            .status, .apn,
            #"\#(apnStart)"New message in Messenger","topic":"im.status.app","collapse_id":"n1",\#(additions),"#
                + #""data":{\#(statusData),"deepLink":"status-app://chats"}}"#
        ),
        (.status, .firebase, #"\#(firebaseStart)"New message in Messenger","data":{\#(statusData)}}"#),
        (
            .status2024, .apn,
            #"\#(apnStart)"You have a new message","topic":"im.status.app","collapse_id":"n1","data":{\#(statusData)}}"#
        ),
        (.status2024, .firebase, #"\#(firebaseStart)"You have a new message","data":{\#(statusData)}}"#),
        (
            .rfc, .apn,
            #"\#(apnStart)"You have a new message","topic":"im.status.app","collapse_id":"n1","data":{\#(publishedData)}}"#
        ),
        (.rfc, .firebase, #"\#(firebaseStart)"You have a new message","data":{\#(publishedData)}}"#),
        (
            .combined, .apn,
            #"\#(apnStart)"New message in Messenger","topic":"im.status.app","collapse_id":"n1",\#(additions),"#
                + #""data":{\#(statusData),"deepLink":"status-app://chats",\#(publishedData)}}"#
        ),
        (.combined, .firebase, #"\#(firebaseStart)"New message in Messenger","data":{\#(statusData),\#(publishedData)}}"#),
    ]

    @Test(arguments: rows) func bodyIsUnchangedByteForByte(profile: PayloadProfile, platform: Platform, expected: String) throws {
        let format = NotificationFormat(profile)
        let body = format.encode([try Sample.notification(platform: platform)], at: Sample.now)
        #expect(String(decoding: body, as: UTF8.self) == #"{"notifications":[\#(expected)]}"#)
        #expect(body == profile.encode([try Sample.notification(platform: platform)]))
    }

    @Test func sandboxIsWrittenAfterTheCollapseID() throws {
        let plain = try Sample.notification()
        let sandboxed = Notification(
            id: plain.id, platform: .apn, deviceToken: plain.deviceToken, apnTopic: plain.apnTopic, isForSandbox: true,
            content: plain.content)
        let body = String(decoding: PayloadProfile.status2024.encode([sandboxed]), as: UTF8.self)
        #expect(body.contains(#""collapse_id":"n1","development":true,"data":"#))
    }

    /// Rules that match nothing, and rules that set nothing.
    @Test(arguments: PayloadProfile.allCases.filter { $0 != .private }) func rulesThatDoNotMatchChangeNothing(profile: PayloadProfile)
        throws
    {
        var style = NotificationStyle(body: "x")
        style.priority = .normal
        var others: [NotificationSettings.Rule] = []
        var rule = NotificationSettings.Rule(style)
        rule.platforms = [.huawei]
        others.append(rule)
        rule = NotificationSettings.Rule(style)
        rule.kinds = [.mention]
        others.append(rule)
        rule = NotificationSettings.Rule(style)
        rule.apps = ["im.status.another"]
        others.append(rule)
        rule = NotificationSettings.Rule(style)
        rule.protocols = ["session"]
        others += [rule, NotificationSettings.Rule()]
        let format = NotificationFormat(profile, settings: NotificationSettings(others))
        for platform in [Platform.apn, .firebase] {
            let notification = try Sample.notification(platform: platform, expires: Sample.now + .seconds(60))
            #expect(format.encode([notification], at: Sample.now) == profile.encode([notification]))
        }
    }
}
