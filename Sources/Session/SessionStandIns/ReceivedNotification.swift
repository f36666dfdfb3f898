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

    /// - Parameters:
    ///   - payload: `enc_payload`, base64.
    ///   - key: The device's `enc_key`.
    package init(opening payload: String, key: SymmetricKey, sodium: Sodium) throws(Malformed) {
        guard let sealed = Data(base64Encoded: payload), let plain = try? sodium.xChaChaOpen([UInt8](sealed)[...], key: key),
            plain.count.isMultiple(of: 256), let read = try? BencodeValue.parsePrefix(plain[...], maximumValueCount: 3),
            read.rest.allSatisfy({ $0 == 0 }), let parts = read.value.list, 1...2 ~= parts.count, let head = parts[0].bytes,
            let metadata = try? JSONSerialization.jsonObject(with: Data(head)) as? [String: Any],
            let account = (metadata["@"] as? String).flatMap({ bytes(hex: $0) }).flatMap({ AccountID($0) }),
            let hash = metadata["#"] as? String, let namespace = metadata["n"] as? Int,
            let storedAt = metadata["t"] as? Int64, let expiresAt = metadata["z"] as? Int64
        else { throw Malformed() }
        if parts.count == 2 {
            guard let data = parts[1].bytes else { throw Malformed() }
            self.data = Array(data)
        } else {
            data = nil
        }
        self.account = account
        (self.hash, self.namespace, self.storedAt, self.expiresAt) = (hash, namespace, storedAt, expiresAt)
        dataByteCount = metadata["l"] as? Int
        // A boolean or a number, depending on the push service.
        isDataLeftOut = (metadata["B"] as? NSNumber)?.boolValue ?? false
    }
}
