import Foundation
import Delivery
import Core
import StatusProtocol
import StatusServer
import Testing

/// Notifications and JSON for the tests.
enum Sample {
    /// 1,000,000 s after 1970.
    static let now = Timestamp(rawValue: 1_000_000_000_000_000)

    static let registrant = [UInt8](repeating: 0xab, count: KeyHash.byteCount)

    static func notification(
        _ id: String = "n1", platform: Platform = .apn, token: String = "token-1", topic: String = "im.status.app",
        kind: NotificationKind = .message, chatID: [UInt8] = [0xc0, 0xff], message: [UInt8] = [0xde, 0xad, 0x00, 0xef],
        installation: String = "installation-1", expires: Timestamp? = nil
    ) throws -> Delivery.Notification {
        Delivery.Notification(
            id: id, platform: platform, deviceToken: DeviceToken(token), apnTopic: topic, expires: expires,
            content: StatusContent(
                kind: kind, chatID: chatID, registrant: try #require(KeyHash(bytes: registrant)), message: message,
                installationID: InstallationID(installation)))
    }

    /// The array `notifications` of a body, which has nothing else.
    /// - Parameter isWanted: which members of each to keep.
    static func notifications(in body: [UInt8], where isWanted: (String, Any) -> Bool = { _, _ in true }) throws -> [NSDictionary] {
        let object = try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        #expect(object.keys.elementsEqual(["notifications"]))
        return try #require(object["notifications"] as? [[String: Any]]).map { notification in
            notification.filter { isWanted($0.key, $0.value) } as NSDictionary
        }
    }

    static func json(_ text: String) throws -> NSDictionary {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]) as NSDictionary
    }
}
