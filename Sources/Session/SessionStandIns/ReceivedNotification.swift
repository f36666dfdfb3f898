import Foundation
package import SessionProtocol
package import WakuCrypto

/// A decrypted `enc_payload`, as read by the device.
package struct ReceivedNotification: Hashable, Sendable {
    package let account: AccountID
    package let hash: String
    package let namespace: Int
    /// Unix milliseconds.
    package let storedAt: Int64
    package let expiresAt: Int64
    /// The size of the message's data if the subscription wants data. The data itself may be omitted.
    package let dataByteCount: Int?
    package let isDataLeftOut: Bool
    package let data: [UInt8]?

    /// The payload was not sealed with this key, or is not a valid notification.
    package struct Malformed: Error, Hashable, Sendable {}

    private struct Metadata: Decodable {
        let account: String
        let hash: String
        let namespace: Int
        let storedAt: Int64
        let expiresAt: Int64
        let length: Int?
        let isLeftOut: Flag?

        enum CodingKeys: String, CodingKey {
            case account = "@"
            case hash = "#"
            case namespace = "n"
            case storedAt = "t"
            case expiresAt = "z"
            case length = "l"
            case isLeftOut = "B"
        }
    }

    /// A JSON boolean or number, depending on the push service.
    private struct Flag: Decodable {
        let isSet: Bool

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            isSet = try (try? container.decode(Bool.self)) ?? (container.decode(Int.self) != 0)
        }
    }

    /// - Parameters:
    ///   - payload: `enc_payload`, base64.
    ///   - key: The device's `enc_key`.
    package init(opening payload: String, key: SymmetricKey, sodium: Sodium) throws(Malformed) {
        guard let sealed = Data(base64Encoded: payload), let plain = try? sodium.xChaChaOpen([UInt8](sealed)[...], key: key),
            plain.count.isMultiple(of: 256), let read = try? BencodeValue.parsePrefix(plain[...], maximumValueCount: 3),
            read.rest.allSatisfy({ $0 == 0 }), let parts = read.value.list, 1...2 ~= parts.count, let head = parts[0].bytes,
            let metadata = try? JSONDecoder().decode(Metadata.self, from: Data(head)),
            let account = bytes(hex: metadata.account).flatMap({ AccountID($0) })
        else { throw Malformed() }
        if parts.count == 2 {
            guard let data = parts[1].bytes else { throw Malformed() }
            self.data = Array(data)
        } else {
            data = nil
        }
        self.account = account
        (hash, namespace, storedAt, expiresAt) = (metadata.hash, metadata.namespace, metadata.storedAt, metadata.expiresAt)
        (dataByteCount, isDataLeftOut) = (metadata.length, metadata.isLeftOut?.isSet ?? false)
    }
}
