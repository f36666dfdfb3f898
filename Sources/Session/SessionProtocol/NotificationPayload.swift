package import Core
package import WakuCrypto

/// The payload of a notification about a message: `enc_payload`.
///
///     bencoded list [metadata, data?] ‖ NUL bytes to a multiple of 256, sealed by XChaCha20-Poly1305, in base64
///
/// Metadata is JSON: `@` account in hex, `#` hash, `n` namespace, `t` and `z` in ms. If the subscription wants data and the message has data, also
/// `l`, its length, and, if the data is omitted because it exceeds 2,500 bytes, `B`. `B` is `true`, except for iOS, whose app fails on `true`: there
/// it is the number 1.
package struct NotificationPayload: Sendable {
    package static let maximumDataByteCount = 2500
    /// For Web Push, the whole payload must fit into a push message of 3,993 bytes, in base64 with 100 bytes around it.
    static let maximumWebPushByteCount = 2816
    static let blockByteCount = 256

    let metadata: String
    /// The message data included in the payload.
    let data: ArraySlice<UInt8>?
    /// Whether data was wanted, but is too long.
    package let isTruncated: Bool

    /// - Parameter message: A message reported by a storage server.
    package init(_ message: NotifyMessage, wantsData: Bool, service: PushService) {
        let wanted = wantsData ? message.data : nil
        // 384 bytes are enough for the metadata of a hash of usual length, and bencode's syntax.
        let maximumCount = service == .webPush ? Self.maximumWebPushByteCount - 384 : Self.maximumDataByteCount
        let isTooLong = (wanted?.count ?? 0) > maximumCount
        isTruncated = isTooLong
        data = isTooLong ? nil : wanted
        // Names and spaces as in the deployed server's output.
        var text = ""
        // Avoids reallocation in most cases: the text is made for every notification.
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

    /// Whether the payload includes message data, which determines the priority for Firebase and Huawei.
    package var carriesData: Bool { data != nil }

    var padded: [UInt8] {
        var plain: [UInt8] = []
        // Includes room for bencode syntax and padding.
        plain.reserveCapacity(metadata.utf8.count + (data?.count ?? 0) + 2 * Self.blockByteCount)
        BencodeValue.list([.text(metadata)] + (data.map { [.bytes($0)] } ?? [])).encode(into: &plain)
        let excess = plain.count % Self.blockByteCount
        if excess > 0 { plain += repeatElement(0, count: Self.blockByteCount - excess) }
        return plain
    }

    /// The sealed payload with a fresh nonce, before base64: nonce(24) ‖ ciphertext ‖ tag(16). Made when the notification enters the outbox.
    package func sealedBytes(with key: SymmetricKey, sodium: Sodium) -> [UInt8] {
        sodium.xChaChaSeal(padded, key: key)
    }
}
