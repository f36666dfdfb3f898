import StatusProtocol
import Core
import Waku
import WakuCrypto

/// A client's relay that decrypts the client's registrations with the server's key.
struct RegistrationTap: Relay {
    let relay: any Relay
    let server: PrivateKey
    let client: PublicKey
    /// Receives the registration and its encrypted form.
    let note: @Sendable (PushNotificationRegistration, [UInt8]) -> Void

    var state: RelayState { relay.state }

    func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        await relay.run(deliver: deliver)
    }

    func watch(_ contentTopics: [ContentTopic]) {
        relay.watch(contentTopics)
    }

    func unwatch(_ contentTopics: [ContentTopic]) {
        relay.unwatch(contentTopics)
    }

    func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        if let payload = try? EnvelopeSealing.open(message, identity: server), payload.segment == nil,
            let envelope = try? MetadataEnvelope(parsing: payload.data, wakuSigner: payload.signer), envelope.kind == .registration,
            let bytes = try? AESGCM.open(envelope.payload, key: server.sharedKey(with: client), layout: .nonceFirst),
            let registration = try? PushNotificationRegistration(parsing: bytes)
        {
            note(registration, envelope.payload)
        }
        return try await relay.publish(message, on: pubsubTopic)
    }
}
