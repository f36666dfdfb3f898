import Foundation
import Delivery
import Core
import StatusProtocol
import StatusServer
import Testing

/// gorush reads every name in a body, with any settings.
struct GorushNameTests {
    /// Each setting alone, with each of its forms, and all together; texts as texts and as keys.
    private static let styles: [NotificationStyle] = {
        var localized = NotificationBodyTests.all
        localized.title = .localized(key: "TK")
        localized.body = .localized(key: "BK")
        var silent = NotificationBodyTests.all
        (silent.title, silent.body) = (.text(""), .text(""))
        return NotificationBodyTests.rows.map(\.style) + [NotificationStyle(), NotificationBodyTests.all, localized, silent]
    }()

    private static func paths(_ object: [String: Any], under parent: String = "") -> Set<String> {
        object.reduce(into: []) { paths, member in
            let path = parent.isEmpty ? member.key : "\(parent).\(member.key)"
            paths.insert(path)
            guard !GorushNames.appData.contains(path), let nested = member.value as? [String: Any] else { return }
            paths.formUnion(Self.paths(nested, under: path))
        }
    }

    private static func paths(
        _ style: NotificationStyle, _ platform: Platform, _ profile: PayloadProfile, _ kind: ContentKind = .message
    ) throws -> Set<String> {
        let format = NotificationFormat(profile, settings: NotificationSettings([NotificationSettings.Rule(style)]))
        let notification = try Sample.notification(
            platform: platform, kind: NotificationKind(kind), expires: Sample.now + .seconds(60))
        let came = try Sample.notifications(in: format.encode([notification], at: Sample.now))
        return paths(try #require(came.first as? [String: Any]))
    }

    @Test(arguments: Platform.ofGorush, PayloadProfile.allCases)
    func everyNameIsOneThatGorushReadsForThePlatform(platform: Platform, profile: PayloadProfile) throws {
        for style in Self.styles {
            for kind in ContentKind.allCases {
                let unknown = try Self.paths(style, platform, profile, kind).subtracting(GorushNames.names(for: platform))
                #expect(unknown.isEmpty, "\(platform) \(profile): \(unknown.sorted())")
            }
        }
    }

    /// The check above would not notice a setting that is written nowhere.
    @Test func theSettingsUseTheNamesThatTheyAreFor() throws {
        var used: [Platform: Set<String>] = [:]
        for platform in Platform.ofGorush {
            for style in Self.styles { used[platform, default: []].formUnion(try Self.paths(style, platform, .combined)) }
        }
        #expect(
            try #require(used[.apn]).isSuperset(of: [
                "message", "title", "topic", "collapse_id", "development", "content_available", "sound", "priority", "push_type",
                "mutable_content", "badge", "category", "interruption_level", "thread-id", "expiration", "alert.title-loc-key",
                "alert.loc-key", "alert.body", "data",
            ]))
        #expect(try #require(used[.firebase]).isSuperset(of: GorushNames.androidPairs.flatMap { [$0.0, $0.1] } + ["mutable_content"]))
        #expect(
            try #require(used[.huawei]).isSuperset(
                of: GorushNames.huawei.subtracting(["app_id", "app_secret"]).union(["message", "title", "sound", "priority"])))
        #expect(used[.huawei]?.contains("data") == false)
    }

    @Test(arguments: PayloadProfile.allCases)
    func oldAndCurrentNamesStandSideBySideForFirebase(profile: PayloadProfile) throws {
        for style in Self.styles {
            let paths = try Self.paths(style, .firebase, profile)
            for (old, current) in GorushNames.androidPairs {
                #expect(paths.contains(old) == paths.contains(current), "\(old) and \(current)")
            }
        }
    }

    /// gorush hands these to decoders that refuse other types.
    @Test func typesAreThoseOfGorush() throws {
        let format = NotificationFormat(settings: NotificationSettings([NotificationSettings.Rule(NotificationBodyTests.all)]))
        let devices = try Platform.ofGorush.map {
            try Sample.notification("\($0.rawValue)", platform: $0, expires: Sample.now + .seconds(60))
        }
        let came = try Sample.notifications(in: format.encode(devices, at: Sample.now))
        #expect(came[0]["expiration"] is Int && came[0]["badge"] is Int && came[0]["development"] as? Bool == true)
        #expect(came[1]["time_to_live"] is Int && (came[1]["android"] as? [String: Any])?["ttl"] as? String == "60s")
        #expect(came[2]["huawei_collapse_key"] is Int && came[2]["huawei_ttl"] is String && came[2]["huawei_data"] is String)
    }
}
