import RateLimits
public import Waku
public import WakuCrypto

/// The result of a ``SealedRegistration``.
public enum RegistrationResult: UInt8, Sendable {
    /// The device is registered.
    case stored = 0
    /// The owner's device is not registered any more.
    case ended = 1
    /// This registration was stored already.
    case repeated = 2
    /// A registration with this version or a higher one was stored already, or the node has ended the device since: register with a higher version.
    case outdated = 3
    /// The node has no room for another owner.
    case full = 4
    /// Nothing was stored. The owner may send the same registration again.
    case failed = 5
}

/// The node's answer to a ``SealedRegistration``, on ``topic(of:answering:)``.
///
///     ECIES to the owner's key of: signature(65) ‖ result(1) ‖ hash of the registration(32)
///
/// The node's signature covers Keccak-256(owner's key(33) ‖ result ‖ hash).
public struct RegistrationAnswer: Sendable {
    private static let byteCount = Signature.byteCount + 33
    /// Whether the node has stored the registration.
    public let result: RegistrationResult
    /// The hash that the registration's signature covers.
    package let registration: [UInt8]

    package init(_ result: RegistrationResult, to registration: [UInt8]) {
        self.result = result
        self.registration = registration
    }

    /// Opens an answer of the node; nil for other messages.
    public init?(opening payload: [UInt8], with owner: PrivateKey, from node: PublicKey) {
        guard let opened = try? ECIES.open(payload, with: owner), opened.count == Self.byteCount,
            let result = RegistrationResult(rawValue: opened[Signature.byteCount])
        else { return nil }
        self.init(result, to: Array(opened.suffix(32)))
        let digest = digest(of: owner.publicKey)
        guard (try? Signature(parsing: opened.prefix(Signature.byteCount)).signer(of: digest)) == node else { return nil }
    }

    func sealed(to owner: PublicKey, by node: PrivateKey) -> [UInt8] {
        ECIES.seal(Signature(of: digest(of: owner), by: node).bytes + [result.rawValue] + registration, to: owner)
    }

    private func digest(of owner: PublicKey) -> [UInt8] { Keccak256.hash(owner.compressed + [result.rawValue] + registration) }

    /// The topic of answers to an owner: that of registrations with 4 bytes of the hash of the owner's key before its last part, such as
    /// `/topic-push/1/registrations-0x1a2b3c4d/json`.
    public static func topic(of owner: PublicKey, answering topic: ContentTopic) -> ContentTopic {
        let suffix = "-0x" + hexString(Array(Keccak256.hash(owner.compressed).prefix(4)))
        let text = topic.rawValue
        guard let slash = text.lastIndex(of: "/") else { return ContentTopic(rawValue: text + suffix) }
        return ContentTopic(rawValue: text[..<slash] + suffix + text[slash...])
    }
}

extension NodeServices {
    /// Publishes the answer to a registration, and records that the message was handled.
    public func answer(
        _ registration: SealedRegistration<some RegisteredDevice>, _ result: RegistrationResult, to message: Decoded<some Sendable>
    ) {
        let answer = RegistrationAnswer(result, to: registration.digest)
        let topic = RegistrationAnswer.topic(of: registration.owner, answering: registration.topic)
        let payer = limits?.hasher.payer(.owner, registration.owner.compressed)
        replies.publish(
            Reply(
                kind: message.kind, expires: false, pubsubTopic: message.pubsubTopic, times: message.times, question: message.hash,
                charge: payer.map { Charge($0, .stranger) } ?? .unattributed, byteCount: answer.registration.count + 1
            ) { now in
                [WakuMessage(payload: answer.sealed(to: registration.owner, by: registration.node), contentTopic: topic, timestamp: now)]
            })
    }

    /// Records that a message without an answer was handled: no other node handles it, and this one does not again after a restart.
    public func finished(_ message: Decoded<some Sendable>) { handled.note(message.hash) }
}
