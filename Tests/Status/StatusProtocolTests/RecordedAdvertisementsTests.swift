import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// Advertisements published by status-go's clients on contact code topics, parsed layer by layer and produced again.
@Suite struct RecordedAdvertisementsTests {
    private static let cases = AdvertisementVectors.recorded.cases
    private static let all = AdvertisementVectors.recorded.cases + AdvertisementVectors.recorded.handling

    private func data(of recording: AdvertisementVectors.Recording) throws -> OpenedPayload {
        let message = WakuMessage(
            payload: recording.wakuMessage.payload.bytes, contentTopic: ContentTopic(rawValue: recording.wakuMessage.contentTopic),
            version: recording.wakuMessage.version, timestamp: Timestamp(rawValue: recording.wakuMessage.timestamp))
        let key = try #require(SymmetricKey(bytes: recording.topic.symmetricKey.bytes))
        return try EnvelopeSealing.open(message, identity: nil, topicKeys: [key])
    }

    @Test(arguments: all) func contactCodeTopicIsTheRecordedOne(_ recording: AdvertisementVectors.Recording) throws {
        let owner = try PublicKey(parsing: recording.clientPublicKey.bytes)
        #expect(StatusTopics.contactCode(owner) == recording.topic.string)
        #expect(ContentTopic(TopicTag(of: recording.topic.string)).rawValue == recording.topic.contentTopic)
    }

    @Test func contactCodeKeyIsDerivedFromTheTopic() throws {
        let recording = try #require(Self.cases.first)
        let sealed = AESGCM.seal([1, 2, 3], key: KeyDerivation.topicKey(recording.topic.string), layout: .nonceLast)
        let recorded = try #require(SymmetricKey(bytes: recording.topic.symmetricKey.bytes))
        #expect(try AESGCM.open(sealed, key: recorded, layout: .nonceLast) == [1, 2, 3])
    }

    @Test(arguments: cases) func recordedAdvertisementIsRead(_ recording: AdvertisementVectors.Recording) throws {
        let payload = try data(of: recording)
        #expect(payload.signer.uncompressed == recording.payloadPlain.signerPublicKey?.bytes)
        let signed = try SignedAdvertisement(parsing: payload.data)
        #expect(signed.owner.uncompressed == recording.clientPublicKey.bytes)
        #expect(signed.installationID?.string == recording.installationId)
        #expect(signed.advertisement.chatIdentity == recording.advertisement.chatIdentity?.bytes ?? [])
        #expect(signed.advertisement.encoded() == recording.advertisement.bytes.bytes)
        #expect(signed.advertisement.pushNotificationInfo.count == recording.advertisement.rows.count)
        for (row, recorded) in zip(signed.advertisement.pushNotificationInfo, recording.advertisement.rows) {
            #expect(row.accessToken.revealed == recorded.accessToken)
            #expect(row.installationID.string == recorded.installationId)
            #expect(row.publicKey == KeyHash(of: signed.owner).bytes)
            #expect(row.allowedKeyList == recorded.allowedKeyList.map(\.bytes))
            #expect(row.version == recorded.version)
            #expect(row.serverPublicKey == recorded.serverPublicKey.bytes)
        }
    }

    /// Filtered rows disclose their token only to the contacts on the list, so their grants are checked only if the list can be decrypted.
    @Test(arguments: cases) func recordedGrantsHold(_ recording: AdvertisementVectors.Recording) throws {
        let owner = try PublicKey(parsing: recording.clientPublicKey.bytes)
        for row in recording.advertisement.rows where !row.accessToken.isEmpty {
            let server = try PublicKey(parsing: row.serverPublicKey.bytes)
            let token = AccessToken(row.accessToken)
            #expect(Grant.isValid(row.grant.bytes, client: owner, server: server, accessToken: token))
            #expect(!Grant.isValid(row.grant.bytes, client: owner, server: owner, accessToken: token))
        }
    }

    /// Grants and signatures are deterministic, so advertisements produced from the recorded values are identical. Only the Waku payload's padding
    /// and nonce are random.
    @Test(arguments: cases) func producedAdvertisementDiffersOnlyWhereRandom(_ recording: AdvertisementVectors.Recording) throws {
        let key = try PrivateKey(bytes: recording.clientPrivateKey.bytes)
        let rows = try recording.advertisement.rows.map { row in
            let server = try PublicKey(parsing: row.serverPublicKey.bytes)
            let token = AccessToken(row.accessToken)
            // A row with a list does not contain the token: the recorded grant is used.
            let grant = token.isEmpty ? row.grant.bytes : Grant.make(client: key, server: server, accessToken: token)
            return PushNotificationQueryInfo(
                accessToken: token, installationID: InstallationID(row.installationId), publicKey: KeyHash(of: key.publicKey).bytes,
                allowedKeyList: row.allowedKeyList.map(\.bytes), grant: grant, version: row.version, serverPublicKey: server.compressed)
        }
        let advertisement = ContactCodeAdvertisement(
            pushNotificationInfo: rows, chatIdentity: recording.advertisement.chatIdentity?.bytes ?? [])
        let wrapping = try #require(recording.protocolMessage)
        let produced = SignedAdvertisement.encode(
            advertisement, from: InstallationID(recording.installationId), bundles: (wrapping.bundleContents ?? []).map(\.bytes.bytes),
            signedBy: key)
        #expect(produced == wrapping.bytes.bytes)
        #expect(produced == recording.payloadPlain.data.bytes)

        let recorded = try data(of: recording)
        let topic = recording.topic.string
        let topicKey = try #require(SymmetricKey(bytes: recording.topic.symmetricKey.bytes))
        let message = try #require(
            EnvelopeSealing.seal(produced, to: .topic(topic, topicKey), wakuSigner: key, at: .now()).first)
        #expect(message.contentTopic.rawValue == recording.wakuMessage.contentTopic)
        #expect(message.payload.count == recording.wakuMessage.payload.bytes.count)
        let opened = try EnvelopeSealing.open(message, identity: nil, topicKeys: [topicKey])
        #expect(opened.data == recorded.data && opened.signer == recorded.signer)
    }

    @Test func advertisementWithoutProtocolMessageIsRead() throws {
        let bare = try #require(AdvertisementVectors.recorded.handling.first { $0.name == "bare_amm" })
        let signed = try SignedAdvertisement(parsing: try data(of: bare).data)
        #expect(signed.owner.uncompressed == bare.clientPublicKey.bytes)
        #expect(signed.installationID == nil)
        #expect(signed.advertisement.pushNotificationInfo.count == 1)
    }

    @Test func otherMessagesAreNoAdvertisements() throws {
        let key = PrivateKey.generate()
        let query = MetadataEnvelope.encode(.query, payload: [1], signedBy: key).bytes
        #expect(throws: EnvelopeError.otherKind) { try SignedAdvertisement(parsing: query) }
        #expect(throws: EnvelopeError.self) { try SignedAdvertisement(parsing: [0xff, 0xff]) }
        #expect(throws: EnvelopeError.self) { try SignedAdvertisement(parsing: []) }
    }

    /// After any bit flip, the advertisement is invalid or has another owner; nothing traps.
    @Test func damagedAdvertisementIsNotTheOwners() throws {
        var generator = SeededGenerator(seed: 17)
        let recording = try #require(Self.cases.first { $0.name == "one_server_apn_no_identity" })
        let good = try data(of: recording).data
        var read = 0
        for _ in 0..<500 {
            let damaged = generator.damaged(good)
            guard damaged != good, let signed = try? SignedAdvertisement(parsing: damaged) else { continue }
            read += 1
            let isUnchanged = signed.advertisement.encoded() == recording.advertisement.bytes.bytes
            #expect(isUnchanged || signed.owner.uncompressed != recording.clientPublicKey.bytes)
        }
        #expect(read > 0)
    }

    @Test func everyRecordedCaseIsThere() {
        #expect(Self.cases.count == 19 && AdvertisementVectors.recorded.handling.count == 13)
    }
}
