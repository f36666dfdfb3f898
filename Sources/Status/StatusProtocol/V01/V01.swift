public import WakuCrypto

/// Version 0.1 of Status' push notifications (June 2020): its messages, topics and hashes.
///
/// A separate protocol beside the deployed one: an account registers one signed record for all of its devices, an access token selects the
/// record, and requests are acknowledged on a topic of the sender's choice. Fields and numbers are in `Protos/push_notifications_v01.proto`.
public enum V01 {
    /// The `type` of an ApplicationMetadataMessage, as numbered in June 2020. The deployed protocol assigns other meanings to the same numbers.
    public enum MessageType: UInt32, Sendable, CaseIterable {
        case register = 15
        case registrationResponse = 16
        case contactCodeAdvertisement = 17
        case query = 18
        case queryResponse = 20
        case request = 21
        case acknowledgement = 22
    }

    /// `push-notifications-` + decimal(X coordinate mod 5000). Clients send all messages to a server here, encrypted to its key.
    public static func serverTopic(_ server: PublicKey) -> String {
        "push-notifications-\(StatusTopics.partition(of: server))"
    }

    /// `chat_id` of a notification, and the entries of `blocked_chat_list`: SHA3-256 of the chat's id.
    public static func chatHash(_ id: String) -> [UInt8] {
        SHA3.hash256(Array(id.utf8))
    }

    /// Decodes a field that may be hexadecimal text: some fields of the published messages are strings although they hold bytes, so clients may
    /// send hexadecimal digits.
    /// - Returns: The decoded bytes of exactly `2 * byteCount` digits; any other field unchanged.
    public static func meaning(of field: [UInt8], byteCount: Int) -> [UInt8] {
        guard field.count == 2 * byteCount else { return field }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        for index in stride(from: 0, to: field.count, by: 2) {
            guard let high = hexNibble(field[index]), let low = hexNibble(field[index + 1]) else { return field }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// The hash of a chat in a field, decoded by ``meaning(of:byteCount:)``.
    public static func chat(_ field: [UInt8]) -> [UInt8] {
        meaning(of: field, byteCount: SHA3.byteCount)
    }
}

extension V01 {
    /// SHA3-256 of a compressed public key, 32 bytes: identifies a registrant in messages without disclosing the key.
    public struct KeyHash: Hashable, Sendable {
        /// Length of a hash in bytes.
        public static let byteCount = SHA3.byteCount
        /// SHA3-256 as in FIPS 202.
        public let bytes: [UInt8]
        /// The identity of the node with which the account is registered.
        package let server: ServerMark?

        /// nil unless there are 32 bytes.
        public init?(bytes: [UInt8]) {
            guard bytes.count == Self.byteCount else { return nil }
            (self.bytes, server) = (bytes, nil)
        }

        /// Hashes the 33-byte compressed form of the key.
        public init(of key: PublicKey) {
            self.init(of: key, server: nil)
        }

        package init(of key: PublicKey, server: ServerMark?) {
            (bytes, self.server) = (SHA3.hash256(key.compressed), server)
        }

        private init(_ bytes: [UInt8], server: ServerMark?) {
            (self.bytes, self.server) = (bytes, server)
        }

        /// The same account at an identity of the node.
        package func registered(with server: ServerMark?) -> KeyHash { KeyHash(bytes, server: server) }

        /// Its form in the database: with a mark hash(32) ‖ mark(8), else the hash.
        package var stored: [UInt8] { bytes + (server?.bytes ?? []) }

        package init?(stored: [UInt8]) {
            let mark = ServerMark(stored: stored.dropFirst(Self.byteCount))
            guard stored.count == Self.byteCount || mark != nil else { return nil }
            self.init(Array(stored.prefix(Self.byteCount)), server: mark)
        }

        /// 64 lower-case digits, without `0x`.
        public var hex: String { hexString(bytes) }
    }
}
