import Gorush
import PushTypes
import Testing

/// Notifications that a device shows once when it gets them twice, by the members that gorush gets.
struct RepetitionTests {
    private func showsOnce(
        _ platform: Platform, in profile: PayloadProfile = .combined, _ set: (inout NotificationStyle) -> Void = { _ in }
    ) throws -> Bool {
        var style = NotificationStyle()
        set(&style)
        let settings = NotificationSettings([NotificationSettings.Rule(style)])
        return NotificationFormat(profile, settings: settings).showsRepetitionOnce(try Sample.notification(platform: platform))
    }

    @Test func alertsOfAPNsAreShownOnceByTheirCollapseID() throws {
        #expect(try showsOnce(.apn))
        #expect(try showsOnce(.apn) { $0.collapse = .message })
        #expect(try showsOnce(.apn) { $0.collapse = .chat })
        #expect(try !showsOnce(.apn) { $0.collapse = .never })
        #expect(try !showsOnce(.apn) { $0.body = .text("") })
        #expect(try !showsOnce(.apn) { $0.pushType = "background" })
    }

    @Test(arguments: [Platform.firebase, .huawei]) func othersAreShownOnceByATagAlone(platform: Platform) throws {
        #expect(try !showsOnce(platform))
        #expect(try showsOnce(platform) { $0.collapse = .message })
        #expect(try showsOnce(platform) { $0.collapse = .chat })
        #expect(try !showsOnce(platform) { $0.collapse = .never })
        // Data-only.
        #expect(
            try !showsOnce(platform) {
                $0.collapse = .message
                $0.body = .text("")
            })
    }

    @Test func combinedOnesHaveAnIDThatMayBeAnotherTheSecondTime() throws {
        #expect(try !showsOnce(.apn, in: .rfc))
    }

    @Test func noMessageHasACollapseKeyOfItsOwn() throws {
        var style = NotificationStyle()
        style.collapse = .message
        let format = NotificationFormat(.combined, settings: NotificationSettings([NotificationSettings.Rule(style)]))
        let body = format.encode([try Sample.notification(platform: .firebase)], at: Sample.now)
        #expect(!String(decoding: body, as: UTF8.self).contains("collapse_key"))
    }
}
