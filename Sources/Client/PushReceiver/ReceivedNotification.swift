import Core
import Foundation

/// A decrypted notification.
public struct ReceivedNotification: Sendable {
    /// As the server sent it: UTF-8 JSON from waku-push, anything from other servers.
    public let content: [UInt8]
    /// The ``ReceiverSubscription/token`` of the subscription that it came for.
    public let subscription: String
    /// nil for content that is not version 1 of waku-push's.
    public let fields: Fields?

    init(_ content: [UInt8], subscription: String) {
        self.content = content
        self.subscription = subscription
        fields = (try? JSONDecoder.decode(Fields.self, fromForeign: content)).flatMap { $0.version == 1 ? $0 : nil }
    }

    /// The same when a notification arrives again, and different for each subscription and protocol; nil if there are no ``fields``.
    package var id: String? { fields.map { "\(subscription)/\($0.protocolName)/\($0.id)" } }

    /// The members of a notification for a device of Status or Session. Byte strings are hexadecimal with `0x` (Status) or base64 (Session), as in
    /// the message.
    public struct Fields: Hashable, Sendable, Codable {
        let version: Int
        /// `status` or `session`.
        public let protocolName: String
        /// The same when a notification arrives again.
        public let id: String
        /// Status: `message`, `mention`, `request-to-join-community`, `contact-request` or `other`.
        public let type: String?
        /// Status: nil if it did not fit.
        public let encryptedMessage: String?
        /// Status: the chat's hash; nil if a sender chose one that did not fit.
        public let chatID: String?
        /// Status: the hash of the registrant's public key.
        public let publicKey: String?
        /// Status: the installations of the device.
        public let installationIDs: [String]?
        /// Session: encrypted to the account's notification key; nil if it did not fit.
        public let encryptedPayload: String?
        /// The message, or a part of it, was left out.
        public let isTruncated: Bool?

        private enum CodingKeys: String, CodingKey {
            case version = "v"
            case protocolName = "protocol"
            case id, type, encryptedMessage
            case chatID = "chatId"
            case publicKey
            case installationIDs = "installationIds"
            case encryptedPayload = "enc_payload"
            case isTruncated = "truncated"
        }
    }
}
