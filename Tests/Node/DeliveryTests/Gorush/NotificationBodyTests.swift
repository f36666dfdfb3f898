import Foundation
import Delivery
import Core
import StatusProtocol
import Testing

/// Whole bodies for each setting and platform, by the names of GORUSH's API: see ``GorushNames``.
struct NotificationBodyTests {
    private static let chat = "d7f8ee3cd7ed9a10e70a496fe4c1925f"
    private static let data =
        #""data":{"encryptedMessage":"0xdead00ef","chatId":"0xc0ff","publicKey":"0x\#(String(repeating: "ab", count: 64))"}"#
    private static let text = #""message":"You have a new message""#
    private static let apnRest = #""topic":"im.status.app","collapse_id":"n1""#

    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let style: NotificationStyle
        let apn: String
        let firebase: String
        let huawei: String
        var testDescription: String { name }

        init(_ name: String, apn: String, firebase: String, huawei: String, _ set: (inout NotificationStyle) -> Void) {
            self.name = name
            var style = NotificationStyle()
            set(&style)
            self.style = style
            (self.apn, self.firebase, self.huawei) = (apn, firebase, huawei)
        }
    }

    /// Members between `platform` and `data`.
    static let rows = [
        Row("title", apn: #"\#(text),"title":"T",\#(apnRest)"#, firebase: #"\#(text),"title":"T""#, huawei: #"\#(text),"title":"T""#) {
            $0.title = .text("T")
        },
        Row("body", apn: #""message":"B",\#(apnRest)"#, firebase: #""message":"B""#, huawei: #""message":"B""#) {
            $0.body = .text("B")
        },
        Row(
            "keys instead of texts", apn: #"\#(apnRest),"alert":{"title-loc-key":"TK","loc-key":"BK"}"#,
            firebase: #""notification":{"title_loc_key":"TK","body_loc_key":"BK"},"#
                + #""android":{"notification":{"title_loc_key":"TK","body_loc_key":"BK"}}"#,
            huawei: #""huawei_notification":{"title_loc_key":"TK","body_loc_key":"BK"}"#
        ) {
            $0.title = .localized(key: "TK")
            $0.body = .localized(key: "BK")
        },
        Row(
            "a text beside a key", apn: #"\#(apnRest),"alert":{"title-loc-key":"TK","body":"You have a new message"}"#,
            firebase: #"\#(text),"notification":{"title_loc_key":"TK"},"android":{"notification":{"title_loc_key":"TK"}}"#,
            huawei: #"\#(text),"huawei_notification":{"title_loc_key":"TK"}"#
        ) {
            $0.title = .localized(key: "TK")
        },
        Row("no text", apn: apnRest, firebase: "", huawei: "") {
            // Settings that need a visible notification are left out for Firebase and Huawei, or the device would show an empty one.
            $0.body = .text("")
            $0.channel = "messages"
        },
        Row(
            "sound", apn: #"\#(text),\#(apnRest),"sound":"ping.caf""#,
            firebase: #"\#(text),"sound":"ping.caf","android":{"notification":{"sound":"ping.caf"}}"#,
            huawei: #"\#(text),"sound":"ping.caf""#
        ) {
            $0.sound = "ping.caf"
        },
        Row("badge", apn: #"\#(text),\#(apnRest),"badge":0"#, firebase: text, huawei: text) { $0.badge = 0 },
        Row("category", apn: #"\#(text),\#(apnRest),"category":"CHAT""#, firebase: text, huawei: text) { $0.category = "CHAT" },
        Row(
            "channel", apn: #"\#(text),\#(apnRest)"#,
            firebase: #"\#(text),"notification":{"android_channel_id":"messages"},"android":{"notification":{"channel_id":"messages"}}"#,
            huawei: #"\#(text),"huawei_notification":{"channel_id":"messages"}"#
        ) {
            $0.channel = "messages"
        },
        Row(
            "mutable content", apn: #"\#(text),\#(apnRest),"mutable_content":true"#, firebase: #"\#(text),"mutable_content":true"#,
            huawei: text
        ) {
            $0.isMutable = true
        },
        Row(
            "interruption level", apn: #"\#(text),\#(apnRest),"interruption_level":"time-sensitive""#, firebase: text, huawei: text
        ) {
            $0.interruptionLevel = .timeSensitive
        },
        Row(
            "high priority", apn: #"\#(text),\#(apnRest),"priority":"high""#,
            firebase: #"\#(text),"priority":"high","android":{"priority":"high"}"#, huawei: #"\#(text),"priority":"high""#
        ) {
            $0.priority = .high
        },
        Row(
            "normal priority", apn: #"\#(text),\#(apnRest),"priority":"normal""#,
            firebase: #"\#(text),"priority":"normal","android":{"priority":"normal"}"#, huawei: #"\#(text),"priority":"normal""#
        ) {
            $0.priority = .normal
        },
        Row(
            "fixed time to live", apn: #"\#(text),\#(apnRest),"expiration":1003600"#,
            firebase: #"\#(text),"time_to_live":3600,"android":{"ttl":"3600s"}"#, huawei: #"\#(text),"huawei_ttl":"3600s""#
        ) {
            $0.timeToLive = .seconds(3600)
        },
        // 89.5 s, rounded up.
        Row(
            "remaining time to live", apn: #"\#(text),\#(apnRest),"expiration":1000090"#,
            firebase: #"\#(text),"time_to_live":90,"android":{"ttl":"90s"}"#, huawei: #"\#(text),"huawei_ttl":"90s""#
        ) {
            $0.timeToLive = .remaining
        },
        Row(
            "no time to live", apn: #"\#(text),\#(apnRest),"expiration":1000000"#,
            firebase: #"\#(text),"time_to_live":0,"android":{"ttl":"0s"}"#, huawei: #"\#(text),"huawei_ttl":"1s""#
        ) {
            $0.timeToLive = .seconds(0)
        },
        // 28 days is Firebase's limit, 15 days Huawei's.
        Row(
            "longest time to live", apn: #"\#(text),\#(apnRest),"expiration":3500000"#,
            firebase: #"\#(text),"time_to_live":2419200,"android":{"ttl":"2419200s"}"#, huawei: #"\#(text),"huawei_ttl":"1296000s""#
        ) {
            $0.timeToLive = .seconds(2_500_000)
        },
        Row("collapse none", apn: #"\#(text),"topic":"im.status.app""#, firebase: text, huawei: #"\#(text),"huawei_collapse_key":-1"#) {
            $0.collapse = .never
        },
        Row(
            "collapse message", apn: #"\#(text),\#(apnRest)"#,
            firebase: #"\#(text),"notification":{"tag":"n1"},"android":{"notification":{"tag":"n1"}}"#,
            huawei: #"\#(text),"huawei_notification":{"tag":"n1"},"huawei_collapse_key":-1"#
        ) {
            $0.collapse = .message
        },
        Row(
            "collapse chat", apn: #"\#(text),"topic":"im.status.app","collapse_id":"\#(chat)""#,
            firebase: #"\#(text),"collapse_key":"\#(chat)","notification":{"tag":"\#(chat)"},"#
                + #""android":{"collapse_key":"\#(chat)","notification":{"tag":"\#(chat)"}}"#,
            huawei: #"\#(text),"huawei_notification":{"tag":"\#(chat)"},"huawei_collapse_key":16"#
        ) {
            $0.collapse = .chat
        },
        Row(
            "thread chat", apn: #"\#(text),\#(apnRest),"thread-id":"\#(chat)""#, firebase: text,
            huawei: #"\#(text),"huawei_notification":{"group":"\#(chat)"}"#
        ) {
            $0.thread = .chat
        },
        Row("thread none", apn: #"\#(text),\#(apnRest)"#, firebase: text, huawei: text) { $0.thread = .never },
        Row("development", apn: #"\#(text),\#(apnRest),"development":true"#, firebase: text, huawei: text) { $0.isForSandbox = true },
        Row("report tag", apn: #"\#(text),\#(apnRest)"#, firebase: text, huawei: #"\#(text),"bi_tag":"waku""#) { $0.reportTag = "waku" },
    ]

    private static func body(_ style: NotificationStyle, _ platform: Platform, _ profile: PayloadProfile = .status2024) throws -> String {
        let format = NotificationFormat(profile, settings: NotificationSettings([NotificationSettings.Rule(style)]))
        let notification = try Sample.notification(platform: platform, expires: Sample.now + .milliseconds(89_500))
        return String(decoding: format.encode([notification], at: Sample.now), as: UTF8.self)
    }

    private static func expected(_ platform: Platform, _ members: String) -> String {
        let object = String(data.dropFirst(#""data":"#.count))
        let last = platform == .huawei ? #""huawei_data":"\#(escaped(object))""# : data
        let all = [#""notif_id":"n1","tokens":["token-1"],"platform":\#(platform.rawValue)"#, members, last].filter { !$0.isEmpty }
        return #"{"notifications":[{\#(all.joined(separator: ","))}]}"#
    }

    private static func escaped(_ json: String) -> String { json.replacing("\"", with: "\\\"") }

    @Test("Golden bodies of each setting", arguments: rows) func golden(row: Row) throws {
        #expect(try Self.body(row.style, .apn) == Self.expected(.apn, row.apn))
        #expect(try Self.body(row.style, .firebase) == Self.expected(.firebase, row.firebase))
        #expect(try Self.body(row.style, .huawei) == Self.expected(.huawei, row.huawei))
    }

    /// Everything at once, over a profile that has a style of its own.
    static let all: NotificationStyle = {
        var style = NotificationStyle()
        style.title = .text("T")
        style.body = .text("B")
        style.sound = "ping.caf"
        style.badge = 3
        style.category = "CHAT"
        style.channel = "messages"
        style.isMutable = true
        style.interruptionLevel = .passive
        style.priority = .normal
        style.timeToLive = .remaining
        style.collapse = .chat
        style.thread = .chat
        style.isForSandbox = true
        style.reportTag = "waku"
        style.deepLink = try? DeepLinkTemplate(parsing: "app://{kind}/{chat}")
        return style
    }()

    @Test func goldenBodiesOfAllSettingsAtOnce() throws {
        let data =
            #"{"encryptedMessage":"0xdead00ef","chatId":"0xc0ff","publicKey":"0x\#(String(repeating: "ab", count: 64))","#
            + #""deepLink":"app://message/c0ff","chat_id":"0xc0ff","message":"0xdead00ef","installation_ids":["installation-1"]}"#
        let chat = Self.chat
        #expect(
            try Self.body(Self.all, .apn, .combined)
                == #"{"notifications":[{"notif_id":"n1","tokens":["token-1"],"platform":1,"message":"B","title":"T","topic":"im.status.app","#
                + #""collapse_id":"\#(chat)","development":true,"content_available":true,"sound":"ping.caf","priority":"normal","#
                + #""push_type":"alert","mutable_content":true,"badge":3,"category":"CHAT","interruption_level":"passive","#
                + #""thread-id":"\#(chat)","expiration":1000090,"data":\#(data)}]}"#)
        #expect(
            try Self.body(Self.all, .firebase, .combined)
                == #"{"notifications":[{"notif_id":"n1","tokens":["token-1"],"platform":2,"message":"B","title":"T","sound":"ping.caf","#
                + #""priority":"normal","mutable_content":true,"collapse_key":"\#(chat)","time_to_live":90,"#
                + #""notification":{"tag":"\#(chat)","android_channel_id":"messages"},"#
                + #""android":{"collapse_key":"\#(chat)","priority":"normal","ttl":"90s","#
                + #""notification":{"tag":"\#(chat)","channel_id":"messages","sound":"ping.caf"}},"data":\#(data)}]}"#)
        #expect(
            try Self.body(Self.all, .huawei, .combined)
                == #"{"notifications":[{"notif_id":"n1","tokens":["token-1"],"platform":3,"message":"B","title":"T","sound":"ping.caf","#
                + #""priority":"normal","huawei_notification":{"tag":"\#(chat)","channel_id":"messages","group":"\#(chat)"},"#
                + #""huawei_collapse_key":16,"huawei_ttl":"90s","bi_tag":"waku","#
                + #""huawei_data":"\#(Self.escaped(data))"}]}"#)
    }

    @Test func emptyTextsRemoveWhatTheProfileHas() throws {
        var style = NotificationStyle()
        style.sound = ""
        style.deepLink = DeepLinkTemplate("")
        let body = try Self.body(style, .apn, .combined)
        #expect(!body.contains("sound") && !body.contains("deepLink") && body.contains(#""push_type":"alert""#))
    }

    @Test func developmentOverridesTheEndpoint() throws {
        let plain = try Sample.notification()
        let sandboxed = Notification(
            id: plain.id, platform: .apn, deviceToken: plain.deviceToken, apnTopic: plain.apnTopic, isForSandbox: true,
            content: plain.content)
        var style = NotificationStyle()
        style.isForSandbox = false
        let format = NotificationFormat(settings: NotificationSettings([NotificationSettings.Rule(style)]))
        #expect(!String(decoding: format.encode([sandboxed], at: Sample.now), as: UTF8.self).contains("development"))
    }

    /// Chats that no request named would otherwise all be one.
    @Test func withoutAChatANotificationCollapsesOnlyWithItself() throws {
        let format = NotificationFormat(.status2024, settings: NotificationSettings([NotificationSettings.Rule(Self.all)]))
        let came = try Sample.notifications(
            in: format.encode([Sample.notification(chatID: []), Sample.notification("n2", platform: .huawei, chatID: [])], at: Sample.now))
        #expect(came[0]["collapse_id"] as? String == "n1" && came[0]["thread-id"] == nil)
        #expect(came[1]["huawei_collapse_key"] as? Int == -1)
        #expect((came[1]["huawei_notification"] as? [String: String])?["tag"] == "n2")
        #expect(((came[0]["data"] as? [String: Any])?["deepLink"] as? String) == "app://message/")
    }

    /// Ids of threads and collapsing are made of the request's hash alone, and don't show it.
    @Test func chatIDsAreHashesOfWhatTheRequestDisclosed() throws {
        func ids(_ chat: [UInt8], kind: NotificationKind = .message, _ registrantsToken: String = "t") throws -> [String] {
            let format = NotificationFormat(.rfc, settings: NotificationSettings([NotificationSettings.Rule(Self.all)]))
            let body = format.encode([try Sample.notification(token: registrantsToken, kind: kind, chatID: chat)], at: Sample.now)
            let came = try #require(try Sample.notifications(in: body).first)
            return try [#require(came["thread-id"] as? String), #require(came["collapse_id"] as? String)]
        }
        let chat = Array(repeating: UInt8(0x5a), count: 64)
        let first = try ids(chat)
        #expect(first[0] == first[1] && first[0].count == 32 && !first[0].contains("5a5a"))
        #expect(try ids(chat, kind: .mention, "another") == first)
        #expect(try ids(chat.dropLast() + [0]) != first)
    }

    /// As those of Session.
    private struct PrescribedContent: NotificationContent {
        let subject = NotificationSubject(protocolName: "prescribing", kind: .other, isFixed: true)
        let byteCount = 0

        func text(in profile: PayloadProfile) -> String { "" }
        func writeData(for body: NotificationBody, to writer: inout JSONWriter) {}
        func write(_ body: NotificationBody, to writer: inout JSONWriter) { body.writeDelivery(priority: "high", to: &writer) }
    }

    @Test func contentsThatPrescribeTheirMembersHaveATimeToLive() throws {
        var rule = NotificationSettings.Rule()
        rule.protocols = ["prescribing"]
        rule.style.timeToLive = .remaining
        let format = NotificationFormat(settings: NotificationSettings([rule]))
        let notifications = Platform.ofGorush.map {
            Delivery.Notification(
                id: "\($0.rawValue)", platform: $0, deviceToken: DeviceToken("token"), apnTopic: "", expires: Sample.now + .seconds(90),
                content: PrescribedContent())
        }
        let added = try Sample.notifications(in: format.encode(notifications, at: Sample.now)) { name, _ in
            !["notif_id", "tokens", "platform"].contains(name)
        }
        let expected = try [
            Sample.json(#"{"expiration":1000090}"#), Sample.json(#"{"time_to_live":90,"android":{"priority":"high","ttl":"90s"}}"#),
            Sample.json(#"{"huawei_ttl":"90s"}"#),
        ]
        #expect(added == expected)
    }

    @Test func expiredNotificationsHaveNoNegativeTimeToLive() throws {
        var style = NotificationStyle()
        style.timeToLive = .remaining
        let format = NotificationFormat(.status2024, settings: NotificationSettings([NotificationSettings.Rule(style)]))
        let late = try Sample.notification(platform: .firebase, expires: Sample.now - .seconds(5))
        let endless = try Sample.notification("n2", platform: .apn, expires: Timestamp(rawValue: .max))
        let unlimited = try Sample.notification("n3", platform: .firebase)
        let came = try Sample.notifications(in: format.encode([late, endless, unlimited], at: Sample.now))
        #expect(came[0]["time_to_live"] as? Int == 0)
        #expect(came[1]["expiration"] as? Int == 9_223_372_037)
        #expect(came[2]["time_to_live"] == nil && came[2]["android"] == nil)
    }

    /// Devices that share a notification have the same settings, and the earliest of their deadlines.
    @Test func groupsHaveOneStyle() throws {
        var mentions = NotificationSettings.Rule(NotificationStyle(body: "A mention"))
        mentions.kinds = [.mention]
        var ttl = NotificationStyle()
        ttl.timeToLive = .remaining
        let format = NotificationFormat(.rfc, settings: NotificationSettings([NotificationSettings.Rule(ttl), mentions]))
        let devices = [
            try Sample.notification("a", token: "1", expires: Sample.now + .seconds(20)),
            try Sample.notification("b", token: "2", kind: .mention, expires: Sample.now + .seconds(30)),
            try Sample.notification("c", token: "3", expires: Sample.now + .seconds(10)),
        ]
        let came = try Sample.notifications(in: format.encode(devices, at: Sample.now))
        #expect(came.map { $0["tokens"] as? [String] } == [["1", "3"], ["2"]])
        #expect(came.map { $0["message"] as? String } == ["You have a new message", "A mention"])
        #expect(came.map { $0["expiration"] as? Int } == [1_000_010, 1_000_030])
    }
}
