package import Delivery
package import Core
package import StatusProtocol
import Storage

/// The content of a version 0.1 notification: always in the published format, independent of the payload profile.
package struct V01Content: NotificationContent {
    package let chatID: [UInt8]
    /// The message, encrypted by the sender for the device.
    package let message: [UInt8]
    package let installationID: InstallationID

    package var byteCount: Int { 2 * (message.count + chatID.count) + 256 }

    package func text(in profile: PayloadProfile) -> String { "You have a new message" }

    /// Chat and message.
    package func groupKey(in profile: PayloadProfile) -> [UInt8]? {
        Self.domain + withUnsafeBytes(of: UInt64(chatID.count).bigEndian, Array.init) + chatID + message
    }

    private static let domain = Array("status-v0.1".utf8)

    package var subject: NotificationSubject {
        NotificationSubject(protocolName: StatusPushV01.protocolName, kind: .message, chat: chatID)
    }

    package func writeData(for body: NotificationBody, to writer: inout JSONWriter) {
        writer.value("chat_id", hex: chatID)
        writer.value("message", hex: message)
        writer.array("installation_ids") { writer in
            for case let content as V01Content in body.devices.lazy.map(\.content) { writer.element(content.installationID.string) }
        }
        if let deepLink = body.deepLink { writer.value("deepLink", deepLink) }
    }
}

/// The encoding of a notification in the outbox: a Request with this notification only, without the fields that were checked.
enum V01Payload {
    static func encode(chatID: [UInt8], message: [UInt8]) -> [UInt8] {
        let entry = V01.PushNotification(accessToken: AccessToken(""), chatID: chatID)
        return V01.Request(requests: [entry], message: message, messageID: [], ackKey: []).encoded()
    }

    /// - Throws: if the bytes were not made by ``encode(chatID:message:)``.
    static func decode(_ bytes: [UInt8], for installationID: InstallationID) throws -> V01Content {
        let request = try V01.Request(parsing: bytes)
        guard let entry = request.requests.first else { throw UnexpectedValue() }
        return V01Content(chatID: entry.chatID, message: request.message, installationID: installationID)
    }
}
