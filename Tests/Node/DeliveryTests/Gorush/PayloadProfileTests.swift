import Foundation
import Delivery
import Core
import StatusProtocol
import StatusServer
import TestSupport
import Testing

/// Each profile, kind and platform as it is on the wire.
struct PayloadProfileTests {
    private static let registrant = "0x" + String(repeating: "ab", count: 64)
    private static let statusData = "\"encryptedMessage\": \"0xdead00ef\", \"chatId\": \"0xc0ff\", \"publicKey\": \"\(registrant)\""
    private static let publishedData = #""chat_id": "0xc0ff", "message": "0xdead00ef", "installation_ids": ["installation-1"]"#
    private static let apnAdditions = #""content_available": true, "sound": "default", "priority": "high", "push_type": "alert""#

    struct Row: Sendable {
        let kind: NotificationKind
        let text: String
        let text2024: String
        let deepLink: String
    }

    static let rows = [
        Row(kind: .message, text: "New message in Messenger", text2024: "You have a new message", deepLink: "status-app://chats"),
        Row(
            kind: .mention, text: "New mention or reply in Communities", text2024: "Someone mentioned you", deepLink: "status-app://ac"),
        Row(
            kind: .requestToJoinCommunity, text: "Someone requested to join a community you are an admin of",
            text2024: "Someone requested to join a community you are an admin of", deepLink: "status-app://ac"),
        Row(
            kind: .contactRequest, text: "Someone sent you a contact request", text2024: "Someone mentioned you",
            deepLink: "status-app://contact-requests"),
        Row(
            kind: NotificationKind(rawValue: 7), text: "New mention or reply in Communities", text2024: "Someone mentioned you",
            deepLink: "status-app://ac"),
    ]

    private func check(_ profile: PayloadProfile, _ row: Row, _ platform: Platform, _ expected: String) throws {
        let body = profile.encode([try Sample.notification(platform: platform, kind: row.kind)])
        #expect(try Sample.notifications(in: body) == [Sample.json(expected)])
    }

    @Test(arguments: rows)
    func status(row: Row) throws {
        try check(
            .status, row, .apn,
            """
            {"notif_id": "n1", "tokens": ["token-1"], "collapse_id": "n1", "platform": 1, "message": "\(row.text)", "topic": "im.status.app",
             \(Self.apnAdditions), "data": {\(Self.statusData), "deepLink": "\(row.deepLink)"}}
            """)
        try check(
            .status, row, .firebase,
            """
            {"notif_id": "n1", "tokens": ["token-1"], "platform": 2, "message": "\(row.text)", "data": {\(Self.statusData)}}
            """)
    }

    @Test(arguments: rows)
    func status2024(row: Row) throws {
        try check(
            .status2024, row, .apn,
            """
            {"notif_id": "n1", "tokens": ["token-1"], "collapse_id": "n1", "platform": 1, "message": "\(row.text2024)", "topic": "im.status.app",
             "data": {\(Self.statusData)}}
            """)
        try check(
            .status2024, row, .firebase,
            """
            {"notif_id": "n1", "tokens": ["token-1"], "platform": 2, "message": "\(row.text2024)", "data": {\(Self.statusData)}}
            """)
    }

    @Test(arguments: rows)
    func rfc(row: Row) throws {
        try check(
            .rfc, row, .apn,
            """
            {"notif_id": "n1", "tokens": ["token-1"], "collapse_id": "n1", "platform": 1, "message": "You have a new message", "topic": "im.status.app",
             "data": {\(Self.publishedData)}}
            """)
        try check(
            .rfc, row, .firebase,
            """
            {"notif_id": "n1", "tokens": ["token-1"], "platform": 2, "message": "You have a new message", "data": {\(Self.publishedData)}}
            """)
    }

    @Test(arguments: rows)
    func combined(row: Row) throws {
        try check(
            .combined, row, .apn,
            """
            {"notif_id": "n1", "tokens": ["token-1"], "collapse_id": "n1", "platform": 1, "message": "\(row.text)", "topic": "im.status.app",
             \(Self.apnAdditions), "data": {\(Self.statusData), \(Self.publishedData), "deepLink": "\(row.deepLink)"}}
            """)
        try check(
            .combined, row, .firebase,
            """
            {"notif_id": "n1", "tokens": ["token-1"], "platform": 2, "message": "\(row.text)",
             "data": {\(Self.statusData), \(Self.publishedData)}}
            """)
    }

    @Test func rfcPutsTheSameTogether() throws {
        let devices = [
            try Sample.notification("a", token: "1", installation: "i1"),
            try Sample.notification("b", token: "2", topic: "im.status.another", installation: "i2"),
            try Sample.notification("c", token: "3", installation: "i3"),
            try Sample.notification("d", platform: .firebase, token: "4", topic: "x", installation: "i4"),
            try Sample.notification("e", platform: .firebase, token: "5", topic: "y", installation: "i5"),
            try Sample.notification("f", token: "6", message: [1], installation: "i6"),
            try Sample.notification("g", token: "7", chatID: [1], installation: "i7"),
        ]
        let came = try Sample.notifications(in: PayloadProfile.rfc.encode(devices))
        #expect(came.map { $0["notif_id"] as? String } == ["a", "b", "d", "f", "g"])
        #expect(came.map { $0["tokens"] as? [String] } == [["1", "3"], ["2"], ["4", "5"], ["6"], ["7"]])
        let installations = came.map { ($0["data"] as? [String: Any])?["installation_ids"] as? [String] }
        #expect(installations == [["i1", "i3"], ["i2"], ["i4", "i5"], ["i6"], ["i7"]])
    }

    @Test(arguments: [PayloadProfile.status, .status2024, .combined])
    func othersKeepDevicesApart(profile: PayloadProfile) throws {
        let came = try Sample.notifications(in: profile.encode([Sample.notification("a"), Sample.notification("b")]))
        #expect(came.map { $0["notif_id"] as? String } == ["a", "b"])
        #expect(came.allSatisfy { ($0["tokens"] as? [String])?.count == 1 })
    }

    @Test(arguments: PayloadProfile.allCases)
    func emptyBytesAreZeroX(profile: PayloadProfile) throws {
        let came = try Sample.notifications(in: profile.encode([Sample.notification(chatID: [], message: [])]))
        let data = try #require(came.first?["data"] as? [String: Any])
        for key in ["encryptedMessage", "chatId", "message", "chat_id"] {
            #expect(data[key] == nil || data[key] as? String == "0x")
        }
    }

    @Test(arguments: ["a\0b", "a/b\\\"", "e\u{301}é😀\u{2028}\u{7f}\u{1}", "</script>"])
    func textSurvives(token: String) throws {
        let body = PayloadProfile.combined.encode([try Sample.notification(token: token, topic: token, installation: token)])
        let came = try #require(try Sample.notifications(in: body).first)
        let expected = Array(token.utf8)
        #expect((came["tokens"] as? [String])?.map { Array($0.utf8) } == [expected])
        #expect((came["topic"] as? String).map { Array($0.utf8) } == expected)
        #expect(!String(decoding: body, as: UTF8.self).contains("\\/"))
    }

    /// Recorded posts of the server that was deployed in 2024.
    @Test func recordedBodies() throws {
        struct Recording: Decodable {
            struct Flow: Decodable {
                struct Post: Decodable {
                    let body: String
                }
                let name: String
                let gorush: [Post]?
            }
            let flows: [Flow]
        }
        let file = Repository.file("Tests/TestSupport/Vectors/status-go.json")
        let recording = try JSONDecoder().decode(Recording.self, from: Data(contentsOf: file))
        let kinds: [String: NotificationKind] = [
            "req_mention_allowed": .mention, "req_join_community": .requestToJoinCommunity, "req_type_7": NotificationKind(rawValue: 7),
        ]
        var count = 0
        for flow in recording.flows {
            for post in flow.gorush ?? [] {
                // It sends an empty topic for Firebase.
                let expected = try Sample.notifications(in: Array(post.body.utf8)) { $0 != "topic" || $1 as? String != "" }
                let notifications = try expected.map { try Self.notification(from: $0, kind: kinds[flow.name] ?? .message) }
                let body = PayloadProfile.status2024.encode(notifications)
                #expect(
                    try Sample.notifications(in: body) { key, _ in !["notif_id", "collapse_id"].contains(key) } == expected, "\(flow.name)")
                count += expected.count
            }
        }
        #expect(count >= 12)
    }

    private static func notification(from json: NSDictionary, kind: NotificationKind) throws -> Delivery.Notification {
        func bytes(_ text: Any?) throws -> [UInt8] {
            let digits = Array(try #require(text as? String).utf8.dropFirst(2))
            return try stride(from: 0, to: digits.count, by: 2).map {
                try #require(UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16))
            }
        }
        let data = try #require(json["data"] as? [String: Any])
        return Delivery.Notification(
            id: "n", platform: try #require((json["platform"] as? Int32).flatMap(Platform.init)),
            deviceToken: DeviceToken(try #require((json["tokens"] as? [String])?.first)), apnTopic: json["topic"] as? String ?? "",
            content: StatusContent(
                kind: kind, chatID: try bytes(data["chatId"]), registrant: try #require(KeyHash(bytes: bytes(data["publicKey"]))),
                message: try bytes(data["encryptedMessage"]), installationID: InstallationID("i")))
    }

    /// A phone shows a notification that is posted twice once. Firebase drops what has the same key: data would be lost.
    @Test(arguments: PayloadProfile.allCases.filter { $0 != .private })
    func apnsNotificationsCollapseWithTheirRepetitions(profile: PayloadProfile) throws {
        let ids = ["a", String(repeating: "b", count: 64), String(repeating: "c", count: 65), ""]
        let devices = try ids.map { try Sample.notification($0, message: Array($0.utf8)) } + [Sample.notification("d", platform: .firebase)]
        let came = try Sample.notifications(in: profile.encode(devices))
        #expect(came.map { $0["collapse_id"] as? String } == [ids[0], ids[1], nil, nil, nil])
        #expect(came.map { $0["notif_id"] as? String } == ids + ["d"])
        let firebase = String(decoding: profile.encode([try Sample.notification("d", platform: .firebase)]), as: UTF8.self)
        #expect(!firebase.contains("collapse"))
    }

    @Test("A token of Apple's sandbox is posted with development", arguments: PayloadProfile.allCases)
    func sandbox(profile: PayloadProfile) throws {
        let plain = try Sample.notification(platform: .apn, kind: .message)
        let sandboxed = Notification(
            id: plain.id, platform: .apn, deviceToken: plain.deviceToken, apnTopic: plain.apnTopic, isForSandbox: true,
            content: plain.content)
        for (notification, expected) in [(plain, false), (sandboxed, true)] {
            #expect(String(decoding: profile.encode([notification]), as: UTF8.self).contains(#""development":true"#) == expected)
        }
    }
}
