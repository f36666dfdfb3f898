import Foundation
import Delivery
import Core
import StatusProtocol
import Testing

@testable import StatusV01Server

@Suite("Version 0.1: requests to gorush")
struct V01ContentTests {
    private static let now = Timestamp(rawValue: 1_000_000_000)

    private func body(_ settings: NotificationSettings, _ platform: Platform, profile: PayloadProfile = .combined) -> String {
        let devices = ["a", "b"].map {
            Delivery.Notification(
                id: "id-\($0)", platform: platform, deviceToken: DeviceToken("token-\($0)"), apnTopic: "im.status", expires: Self.now,
                content: V01Content(chatID: [0xc0, 0xff], message: [1], installationID: InstallationID($0)))
        }
        return String(decoding: NotificationFormat(profile, settings: settings).encode(devices, at: Self.now), as: UTF8.self)
    }

    private static let data = #"{"chat_id":"0xc0ff","message":"0x01","installation_ids":["a","b"]"#

    @Test(arguments: PayloadProfile.allCases.filter { $0 != .private }) func withoutSettingsTheBodyIsThePublishedOne(
        profile: PayloadProfile
    ) {
        #expect(
            body(.none, .apn, profile: profile)
                == #"{"notifications":[{"notif_id":"id-a","tokens":["token-a","token-b"],"platform":1,"message":"You have a new message","#
                + #""topic":"im.status","collapse_id":"id-a","data":\#(Self.data)}}]}"#)
        #expect(
            body(.none, .firebase, profile: profile)
                == #"{"notifications":[{"notif_id":"id-a","tokens":["token-a","token-b"],"platform":2,"message":"You have a new message","#
                + #""data":\#(Self.data)}}]}"#)
    }

    @Test func settingsApplyToItAsAMessage() throws {
        var rule = NotificationSettings.Rule(NotificationStyle(body: "B"))
        (rule.style.priority, rule.style.deepLink) = (.high, try DeepLinkTemplate(parsing: "app:{kind}/{chat}"))
        (rule.kinds, rule.protocols) = ([.message], ["status-v0.1"])
        #expect(
            body(NotificationSettings([rule]), .firebase)
                == #"{"notifications":[{"notif_id":"id-a","tokens":["token-a","token-b"],"platform":2,"message":"B","priority":"high","#
                + #""android":{"priority":"high"},"data":\#(Self.data),"deepLink":"app:message/c0ff"}}]}"#)
        rule.protocols = ["status"]
        #expect(body(NotificationSettings([rule]), .firebase) == body(.none, .firebase))
    }
}
