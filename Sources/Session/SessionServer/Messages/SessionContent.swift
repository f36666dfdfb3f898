import Foundation
package import Delivery
package import Core
package import SessionProtocol
package import Storage
package import WakuCrypto

/// The payload of a notification in the outbox, encrypted for its device: a retry posts the same bytes, unless the device has changed its key.
///
///     flags(1) ‖ namespace(2, big-endian) ‖ nonce(24) ‖ ciphertext ‖ tag(16)     flags: bit 0: it carries data, bit 1: data was left out
package struct SessionPayload: Hashable, Sendable {
    package let carriesData: Bool
    /// Whether the message's data was wanted, but is too long.
    package let isTruncated: Bool
    package let namespace: Int16
    /// `enc_payload` before base64.
    package private(set) var sealed: [UInt8]

    package init(_ message: NotifyMessage, for record: SubscriptionRecord, _ service: PushService, _ sodium: Sodium) {
        let payload = NotificationPayload(message, wantsData: record.wantsData, service: service)
        carriesData = payload.carriesData
        isTruncated = payload.isTruncated
        namespace = message.namespace
        sealed = payload.sealedBytes(with: record.encryptionKey, sodium: sodium)
    }

    package init(parsing bytes: [UInt8]) throws(UnexpectedValue) {
        guard bytes.count > 3 else { throw UnexpectedValue() }
        carriesData = bytes[0] & 1 != 0
        isTruncated = bytes[0] & 2 != 0
        namespace = Int16(bitPattern: UInt16(bytes[1]) << 8 | UInt16(bytes[2]))
        sealed = Array(bytes[3...])
    }

    /// The same content for another key, with a fresh nonce.
    ///
    /// - Throws: ``CryptoError/authenticationFailed`` unless it is sealed with the former key.
    package func sealedAgain(
        from former: SymmetricKey, to key: SymmetricKey, _ sodium: Sodium
    ) throws(CryptoError) -> SessionPayload {
        var copy = self
        copy.sealed = sodium.xChaChaSeal(try sodium.xChaChaOpen(sealed[...], key: former), key: key)
        return copy
    }

    package func encoded() -> [UInt8] {
        let number = UInt16(bitPattern: namespace)
        return [(carriesData ? 1 : 0) | (isTruncated ? 2 : 0), UInt8(number >> 8), UInt8(truncatingIfNeeded: number)] + sealed
    }
}

/// The content of a Session notification for one device, independent of the payload profile. The app depends on all fields, so only the
/// operator's delivery settings apply.
package struct SessionContent: NotificationContent {
    private let payload: SessionPayload
    private let service: PushService
    private let apnsTopic: String

    /// - Parameter apnsTopic: `--session-apns-topic`.
    package init(_ payload: SessionPayload, service: PushService, apnsTopic: String) {
        self.payload = payload
        self.service = service
        self.apnsTopic = apnsTopic
    }

    package var byteCount: Int { 512 + 2 * payload.sealed.count }

    /// `enc_payload`. Encoded when the notification is posted, not on the store's thread.
    private var encodedPayload: String { Data(payload.sealed).base64EncodedString() }

    /// Whether it is of high priority for Firebase, Huawei and Web Push.
    private var isUrgent: Bool { payload.carriesData && [0, 11].contains(payload.namespace) }

    package var subject: NotificationSubject {
        NotificationSubject(protocolName: SessionPush.protocolName, kind: .message, isFixed: true)
    }

    package func text(in profile: PayloadProfile) -> String { "" }

    /// On iOS an alert that the app's extension decrypts; elsewhere the app itself shows it.
    package func isVisible(in body: NotificationBody) -> Bool { body.first.platform == .apn }

    package func webPushContent(id: String) -> WebPushContent? {
        func json(includesPayload: Bool) -> [UInt8] {
            var writer = JSONWriter(capacity: 256 + 2 * payload.sealed.count)
            writer.object { writer in
                writer.value("v", 1)
                writer.value("protocol", "session")
                writer.value("id", id)
                if includesPayload { writer.value("enc_payload", encodedPayload) }
                writer.value("spns", 1)
                if payload.isTruncated || !includesPayload { writer.value("truncated", true) }
            }
            return writer.bytes
        }
        return WebPushContent(
            whole: json(includesPayload: true), truncated: json(includesPayload: false), urgency: isUrgent ? .high : .normal)
    }

    package func writeData(for body: NotificationBody, to writer: inout JSONWriter) {}

    package func write(_ body: NotificationBody, to writer: inout JSONWriter) {
        let priority = service.isApple || isUrgent ? "high" : "normal"
        body.writeCollapseID(to: &writer)
        switch service {
        case .apns, .apnsSandbox:
            writer.value("topic", apnsTopic)
            writer.value("title", "Session")
            writer.value("message", "You've got a new message")
            writer.value("badge", 1)
            writer.value("sound", "default")
            writer.value("mutable_content", true)
            writer.value("category", "SECRET")
            writer.value("push_type", "alert")
            if service == .apnsSandbox { writer.value("development", true) }
            writer.object("data") { writer in
                writer.value("enc_payload", encodedPayload)
                writer.value("spns", 1)
            }
        case .firebase:
            writer.object("data") { writer in
                writer.value("enc_payload", encodedPayload)
                writer.value("spns", "1")
            }
        case .huawei: writer.value("huawei_data", #"{"enc_payload":"\#(encodedPayload)","spns":"1"}"#)
        case .webPush: return
        }
        writer.value("priority", priority)
        body.writeDelivery(priority: priority, to: &writer)
    }
}
