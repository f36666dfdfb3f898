import Core
import Delivery
import StatusProtocol
import Testing
import WakuCrypto

@testable import StatusServer

struct StatusContentTests {
    /// Other profiles' texts and data differ by device.
    @Test func onlyThePublishedFormatGroupsDevices() {
        let content = StatusContent(
            PushNotification(
                accessToken: AccessToken("a"), chatID: [1], publicKey: [2], installationID: InstallationID("b"), kind: .message, author: [3]
            ),
            for: StatusStoreFixture.key())
        #expect(PayloadProfile.allCases.filter { content.groupKey(in: $0) != nil } == [.rfc])
    }

    @Test func webPushGetsTheMessageUnlessItIsTooLong() throws {
        let registrant = StatusStoreFixture.key().keyHash
        let content = StatusContent(
            kind: .mention, chatID: [0xc0, 0xff], registrant: registrant, message: [1], installationID: InstallationID("b"))
        let json = try #require(content.webPushContent(id: "n1"))
        let start = #"{"v":1,"protocol":"status","id":"n1","type":"mention","#
        let end = #""chatId":"0xc0ff","publicKey":"0x\#(registrant.hex)","installationIds":["b"]"#
        #expect(String(decoding: json.whole, as: UTF8.self) == start + #""encryptedMessage":"0x01","# + end + "}")
        #expect(String(decoding: json.truncated, as: UTF8.self) == start + end + #","truncated":true}"#)
        #expect(json.urgency == .high)
    }

    /// 64 bytes are the hash of a chat. JSON needs six bytes for each control character of the longest id of an installation.
    @Test(arguments: [(64, true), (1_000, true), (3_000, false), (PushNotification.contentByteLimit, false)])
    func webPushLeavesOutAChatThatFitsIntoNoMessage(byteCount: Int, isNamed: Bool) throws {
        let installation = InstallationID(String(repeating: "\u{1}", count: InstallationID.maximumByteCount))
        let content = StatusContent(
            kind: .requestToJoinCommunity, chatID: [UInt8](repeating: 0xc0, count: byteCount), registrant: StatusStoreFixture.key().keyHash,
            message: [], installationID: installation)
        let truncated = try #require(content.webPushContent(id: DeliveryID(hashing: [1]).notificationID)).truncated
        #expect(truncated.count <= WebPushEncryption.maximumContentByteCount)
        let json = String(decoding: truncated, as: UTF8.self)
        #expect(json.contains(#""chatId":"0xc0"#) == isNamed && json.hasSuffix(#","truncated":true}"#))
    }
}
