import Core
import StatusProtocol
import Testing

@testable import Delivery

struct GorushReplyTests {
    @Test func countsAndFailures() {
        let reply = GorushReply(
            parsing: Array(
                """
                {"success": "ok", "counts": 2, "logs": [
                 {"notif_id": "a", "type": "failed-push", "platform": "ios", "token": "**", "message": "m", "error": "Unregistered"},
                 {"type": "succeeded-push", "platform": "android", "token": "t", "error": "x"},
                 {"type": "failed-push", "platform": "huawei", "error": "no"}, {"error": 5}, {"error": ""}, 7, null, {}]}
                """.utf8))
        #expect(reply.counts == 2)
        #expect(reply.failures.map(\.notificationID) == ["a", nil])
        #expect(reply.failures.map(\.platform) == [.apn, .huawei])
        #expect(reply.failures.map(\.verdict) == [.dead, .other])
    }

    @Test(arguments: [
        "", "ok", "[]", "{", "{\"counts\": -1}", "{\"counts\": \"2\", \"logs\": {}}", "{\"logs\": null}",
        String(repeating: "[", count: 5000),
    ])
    func strangeRepliesSayNothing(text: String) {
        let reply = GorushReply(parsing: Array(text.utf8))
        #expect(reply.counts == nil)
        #expect(reply.failures.isEmpty)
    }

    @Test func repliesAreBounded() {
        let entry = "{\"error\": \"\(String(repeating: "e", count: 5000))\"}"
        let logs = Array(repeating: entry, count: 1500).joined(separator: ",")
        let reply = GorushReply(parsing: Array("{\"logs\": [\(logs)]}".utf8))
        #expect(reply.failures.count == 1000)
        #expect(reply.failures.allSatisfy { $0.error.utf8.count == 1024 })
    }

    /// Each empty object would take some hundred bytes.
    @Test func manyValuesSayNothing() {
        func reply(_ count: Int) -> GorushReply {
            let logs = Array(repeating: "{}", count: count).joined(separator: ",")
            return GorushReply(parsing: Array("{\"counts\": 1, \"logs\": [\(logs)]}".utf8))
        }
        #expect(reply(10_000).counts == 1)
        #expect(reply(GorushReply.maximumValueCount).counts == nil)
    }

    @Test func feedbackIsOneFailure() throws {
        let body = #"{"notif_id":"n","type":"failed-push","platform":"android","token":"t","message":"","error":"NotRegistered"}"#
        let failure = try #require(GorushFailure(parsing: Array(body.utf8)))
        #expect(failure.notificationID == "n")
        #expect(failure.verdict == .dead)
        #expect(GorushFailure(parsing: Array("[\(body)]".utf8)) == nil)
        #expect(GorushFailure(parsing: []) == nil)
    }

    @Test(
        arguments: [
            (.apn, "Unregistered", .dead), (.apn, "ExpiredToken", .dead), (.apn, "BadDeviceToken", .doubtful),
            (.apn, "DeviceTokenNotForTopic", .doubtful), (.apn, "TooManyRequests", .other), (.apn, "NotRegistered", .other),
            (.apn, "Requested entity was not found.", .other), (.firebase, "Requested entity was not found.", .dead),
            (.firebase, "NotRegistered", .dead), (.firebase, "Unregistered", .other), (.firebase, "BadDeviceToken", .other),
            (.firebase, "Request contains an invalid argument.", .doubtful), (.firebase, "INVALID_ARGUMENT", .doubtful),
            (.firebase, "The registration token is not a valid FCM registration token", .doubtful),
            (.firebase, "InvalidRegistration", .doubtful), (.firebase, "SenderId mismatch", .doubtful),
            (.apn, "TopicDisallowed", .doubtful), (.apn, "InvalidProviderToken", .operatorsMistake),
            (.apn, "BadEnvironmentKeyIdInToken", .operatorsMistake), (.apn, "UnrelatedKeyIdInToken", .operatorsMistake),
            (.apn, "PayloadTooLarge", .message), (.firebase, "PayloadTooLarge", .other),
            (.firebase, "Request had invalid authentication credentials.", .operatorsMistake), (.apn, "max capacity reached", .other),
            (.apn, #"Post "https://api.push.apple.com/3/device/00": remote error: tls: expired certificate"#, .operatorsMistake),
            (.apn, #"Post "https://api.push.apple.com/3/device/00": read: connection reset by peer"#, .other),
            (nil, "Unregistered", .other), (.apn, "", .other),
        ] as [(Platform?, String, TokenVerdict)])
    func verdicts(platform: Platform?, error: String, verdict: TokenVerdict) {
        #expect(TokenVerdict(platform: platform, error: error) == verdict)
    }

    @Test func nothingOfATokenIsPrinted() throws {
        let failure = try #require(GorushFailure(parsing: Array(#"{"token": "sesame", "error": "for sesame"}"#.utf8)))
        let notification = try Sample.notification(token: "sesame")
        var text = "\(failure) \(notification) "
        dump((failure, notification), to: &text)
        #expect(!text.contains("sesame"))
    }
}
