package import Core
package import RateLimits
package import StatusProtocol
package import WakuCrypto

/// The limits in the terms of Status.
extension RateLimitTable {
    /// Admits a message of a known kind.
    ///
    /// - Parameters:
    ///   - kind: the kind of the message; answers are not limited.
    ///   - sender: nil if there is none: then only the limits for all senders together apply.
    package mutating func message(_ kind: MessageKind, from sender: PublicKey?, at now: Timestamp) -> Refusal? {
        switch kind {
        case .registration: message(MessageClass.registration, from: sender, at: now)
        case .query: message(MessageClass.query, from: sender, at: now)
        case .request: message(MessageClass.request, from: sender, at: now)
        case .registrationResponse, .queryResponse, .response: nil
        }
    }

    package mutating func query(about registrant: KeyHash, at now: Timestamp) -> Refusal? {
        query(about: registrant.bytes, at: now)
    }

    package mutating func answer(
        byteCount: Int, about registrant: KeyHash, queryByteCount: Int = 512, _ standing: Standing = .stranger, at now: Timestamp
    ) -> Refusal? {
        answer(byteCount: byteCount, about: registrant.bytes, queryByteCount: queryByteCount, standing, at: now)
    }

    package mutating func notification(for device: RegistrationKey, by charge: Charge = .unattributed, at now: Timestamp) -> Refusal? {
        notification(for: device.keyHash.bytes + device.installationID.bytes, by: charge, at: now)
    }
}

extension Limits {
    package func allows(_ key: KeyHash) -> Bool { allows(key.bytes) }
}
