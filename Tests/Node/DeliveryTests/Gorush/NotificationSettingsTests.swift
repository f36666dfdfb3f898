import Foundation
import Delivery
import Core
import StatusProtocol
import StatusServer
import Testing

/// Which rules apply to a notification, and which of them wins.
struct NotificationSettingsTests {
    private func rule(_ body: String, _ select: (inout NotificationSettings.Rule) -> Void = { _ in }) -> NotificationSettings.Rule {
        var rule = NotificationSettings.Rule(NotificationStyle(body: body))
        select(&rule)
        return rule
    }

    private func message(
        _ rules: [NotificationSettings.Rule], platform: Platform = .apn, topic: String = "im.status.app", kind: NotificationKind = .message
    ) throws -> String? {
        let format = NotificationFormat(.status2024, settings: NotificationSettings(rules))
        let notification = try Sample.notification(platform: platform, topic: topic, kind: kind)
        return try Sample.notifications(in: format.encode([notification], at: Sample.now)).first?["message"] as? String
    }

    private static let standard = "You have a new message"

    @Test func rulesSelectByPlatform() throws {
        let rules = [rule("b") { $0.platforms = [.firebase, .huawei] }]
        #expect(try message(rules) == Self.standard)
        #expect(try message(rules, platform: .firebase) == "b")
        #expect(try message(rules, platform: .huawei) == "b")
    }

    @Test func rulesSelectByKind() throws {
        for kind in ContentKind.allCases {
            let rules = [rule(kind.rawValue) { $0.kinds = [kind] }]
            #expect(try message(rules, kind: NotificationKind(kind)) == kind.rawValue)
            for other in ContentKind.allCases where other != kind {
                #expect(try message(rules, kind: NotificationKind(other)) != kind.rawValue)
            }
        }
    }

    /// A Firebase token does not tell its app: a client's topic there is only a claim.
    @Test func rulesSelectByAppOnApple() throws {
        let rules = [rule("b") { $0.apps = ["im.status.app", "im.status.pr"] }]
        #expect(try message(rules) == "b")
        #expect(try message(rules, topic: "im.status.another") == Self.standard)
        #expect(try message(rules, platform: .firebase) == Self.standard)
    }

    @Test func rulesSelectByGorush() throws {
        let settings = NotificationSettings([rule("all"), rule("google") { $0.endpoints = ["google"] }])
        #expect(settings.rules(forEndpoint: "apple").rules.count == 1)
        #expect(settings.rules(forEndpoint: "google").rules.count == 2)
    }

    @Test func rulesSelectByProtocol() throws {
        #expect(try message([rule("b") { $0.protocols = ["status"] }]) == "b")
        #expect(try message([rule("b") { $0.protocols = ["status-v0.1", "session"] }]) == Self.standard)
    }

    @Test func theLastMatchingRuleWinsSettingBySetting() throws {
        var sound = NotificationSettings.Rule()
        sound.style.sound = "first.caf"
        sound.style.badge = 1
        var other = NotificationSettings.Rule()
        other.style.sound = "second.caf"
        var elsewhere = NotificationSettings.Rule()
        elsewhere.style.sound = "third.caf"
        elsewhere.platforms = [.firebase]
        let format = NotificationFormat(.status2024, settings: NotificationSettings([sound, other, elsewhere]))
        let came = try #require(try Sample.notifications(in: format.encode([Sample.notification()], at: Sample.now)).first)
        #expect(came["sound"] as? String == "second.caf" && came["badge"] as? Int == 1)
    }

    @Test func aLaterTextReplacesAnEarlierKeyAndTheOtherWayRound() throws {
        var key = NotificationSettings.Rule()
        key.style.body = .localized(key: "K")
        #expect(try message([key, rule("b")]) == "b")
        #expect(try message([rule("b"), key]) == nil)
    }
}

struct DeepLinkTemplateTests {
    private func link(_ template: String, kind: NotificationKind = .contactRequest) throws -> String? {
        var rule = NotificationSettings.Rule()
        rule.style.deepLink = try DeepLinkTemplate(parsing: template)
        let format = NotificationFormat(.status2024, settings: NotificationSettings([rule]))
        let came = try Sample.notifications(in: format.encode([Sample.notification(kind: kind)], at: Sample.now))
        return (came.first?["data"] as? [String: Any])?["deepLink"] as? String
    }

    @Test(arguments: [
        ("status-app://chats", "status-app://chats"), ("{kind}", "contact-request"), ("a:{chat}", "a:c0ff"),
        ("a:{kind}/{chat}{chat}?x", "a:contact-request/c0ffc0ff?x"), ("é{kind}", "écontact-request"),
    ])
    func placeholdersAreFilledIn(template: String, expected: String) throws {
        #expect(try link(template) == expected)
    }

    @Test func anEmptyTemplateHasNoLink() throws {
        #expect(try link("") == nil)
    }

    @Test(arguments: [
        ("{registrant}", DeepLinkTemplate.Problem.unknownPlaceholder("registrant")), ("{}", .unknownPlaceholder("")),
        ("{kind", .unpairedBrace), ("kind}", .unpairedBrace), ("{{kind}}", .unpairedBrace), ("}{", .unpairedBrace),
    ])
    func otherPlaceholdersAreRefused(template: String, problem: DeepLinkTemplate.Problem) {
        #expect(throws: problem) { try DeepLinkTemplate(parsing: template) }
    }
}
