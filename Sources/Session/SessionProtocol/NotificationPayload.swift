import Foundation
package import Core
package import WakuCrypto

/// What a device is sent about a message: `enc_payload`.
///
///     bencoded list [metadata, data?] ‖ NUL bytes to a multiple of 256, sealed by XChaCha20-Poly1305, in base64
///
/// Metadata is JSON: `@` hex account, `#` hash, `n` namespace, `t` and `z` ms and, if the subscription wants data and there is some, `l` its length
/// and `B` when it is left out for being over 2,500 bytes: `true`, for iOS the number 1. Its app reads a number there, and fails on `true`.
package struct NotificationPayload: Sendable {
    package static let maximumDataByteCount = 2500
    static let blockByteCount = 256

    let metadata: String
    /// Message data that is sent along.
    let data: ArraySlice<UInt8>?

    /// - Parameters:
    ///   - message: What a storage server reported.
    ///   - wantsData: Whether the subscription asked for data.
    ///   - service: The device's.
    package init(_ message: NotifyMessage, wantsData: Bool, service: PushService) {
        let wanted = wantsData ? message.data : nil
        let isTooLong = (wanted?.count ?? 0) > Self.maximumDataByteCount
        data = isTooLong ? nil : wanted
        // Names and blanks as the deployed server writes them.
        var text = ""
        // Mostly enough: the text is made for every notification.
        text.reserveCapacity(Self.blockByteCount)
        func add(_ start: String, _ value: String) {
            text += start
            text += value
        }
        add("{\"@\": \"", message.account.hex)
        add("\", \"#\": ", jsonText(message.hash))
        add(", \"n\": ", String(message.namespace))
        add(", \"t\": ", String(message.storedAt))
        add(", \"z\": ", String(message.expiresAt))
        if let wanted { add(", \"l\": ", String(wanted.count)) }
        if isTooLong { add(", \"B\": ", service.isApple ? "1" : "true") }
        text += "}"
        metadata = text
    }

    /// Whether data is sent along, which decides the priority for Firebase and Huawei.
    package var carriesData: Bool { data != nil }

    var padded: [UInt8] {
        var plain: [UInt8] = []
        // With what is between the parts, and the padding.
        plain.reserveCapacity(metadata.utf8.count + (data?.count ?? 0) + 2 * Self.blockByteCount)
        BencodeValue.list([.text(metadata)] + (data.map { [.bytes($0)] } ?? [])).encode(into: &plain)
        let excess = plain.count % Self.blockByteCount
        if excess > 0 { plain += repeatElement(0, count: Self.blockByteCount - excess) }
        return plain
    }

    /// Base64 with padding, under a fresh nonce: done once, when the notification enters the outbox.
    package func sealed(with key: SymmetricKey, sodium: Sodium) -> String {
        Data(sealedBytes(with: key, sodium: sodium)).base64EncodedString()
    }

    /// The same before base64: nonce(24) ‖ ciphertext ‖ tag(16).
    package func sealedBytes(with key: SymmetricKey, sodium: Sodium) -> [UInt8] {
        sodium.xChaChaSeal(padded, key: key)
    }

    /// With a given nonce, for vectors.
    func sealed(with key: SymmetricKey, nonce: [UInt8], sodium: Sodium) -> String {
        Data(sodium.xChaChaSeal(padded, key: key, nonce: nonce)).base64EncodedString()
    }
}
