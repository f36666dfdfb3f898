import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushClient

/// Advertisements crafted for status-go's push client: this client accepts the same rows.
@Suite struct RecordedHandlingTests {
    private static let handling = AdvertisementVectors.recorded.handling

    private func directory(after recording: AdvertisementVectors.Recording) throws -> Directory {
        let listener = try PrivateKey(bytes: try #require(recording.listenerPrivateKey).bytes)
        var directory = Directory(cryptography: IdentityCryptography(identity: listener))
        let message = WakuMessage(
            payload: recording.wakuMessage.payload.bytes, contentTopic: ContentTopic(rawValue: recording.wakuMessage.contentTopic),
            timestamp: Timestamp(rawValue: recording.wakuMessage.timestamp))
        let key = try #require(SymmetricKey(bytes: recording.topic.symmetricKey.bytes))
        guard let payload = try? EnvelopeSealing.open(message, identity: nil, topicKeys: [key]),
            let signed = try? SignedAdvertisement(parsing: payload.data)
        else { return directory }
        let rows = signed.advertisement.pushNotificationInfo
        directory.learn(advertised: rows, by: signed.owner, from: signed.installationID, sentAt: message.timestamp)
        return directory
    }

    @Test(arguments: handling) func rowsThatStatusGoTakesAreTaken(_ recording: AdvertisementVectors.Recording) throws {
        let owner = try PublicKey(parsing: recording.clientPublicKey.bytes)
        let rows = try directory(after: recording).rows(of: owner).filter { $0.accessToken != nil }
        let saved = recording.pushClient?.rowsSaved ?? []
        #expect(rows.map(\.installationID.string) == saved.map(\.installationId))
        #expect(rows.map { $0.accessToken?.revealed } == saved.map(\.accessToken))
        #expect(rows.map(\.server.compressed) == saved.map(\.serverPublicKey.bytes))
    }

    @Test func rowThatIsNotForTheListenerIsRemembered() throws {
        let recording = try #require(Self.handling.first { $0.name == "not_listed" })
        let owner = try PublicKey(parsing: recording.clientPublicKey.bytes)
        let rows = try directory(after: recording).rows(of: owner)
        #expect(rows.count == 1 && rows[0].accessToken == nil)
    }

    /// All published advertisements, read by an unrelated client: unrestricted rows with their tokens, restricted rows without.
    @Test(arguments: AdvertisementVectors.recorded.cases) func publishedRowsAreTaken(_ recording: AdvertisementVectors.Recording) throws {
        let owner = try PublicKey(parsing: recording.clientPublicKey.bytes)
        let signed = try SignedAdvertisement(parsing: recording.payloadPlain.data.bytes)
        var directory = Directory(cryptography: IdentityCryptography(identity: .generate()))
        directory.learn(
            advertised: signed.advertisement.pushNotificationInfo, by: signed.owner, from: signed.installationID,
            sentAt: MachineBench.start)
        let rows = directory.rows(of: owner)
        #expect(rows.count == recording.advertisement.rows.count)
        for (row, recorded) in zip(rows, recording.advertisement.rows) {
            #expect(row.accessToken?.revealed ?? "" == recorded.accessToken)
        }
    }

    @Test func rowsOfAnAnswerAreNewsOnce() throws {
        let recording = try #require(AdvertisementVectors.recorded.cases.first { !$0.advertisement.rows.isEmpty })
        let signed = try SignedAdvertisement(parsing: recording.payloadPlain.data.bytes)
        let first = try #require(signed.advertisement.pushNotificationInfo.first)
        let server = try PublicKey(parsing: first.serverPublicKey)
        var directory = Directory(cryptography: IdentityCryptography(identity: .generate()))
        let isNews = directory.learn(answered: [first], about: signed.owner, by: server, at: MachineBench.start)
        let isNewsAgain = directory.learn(answered: [first], about: signed.owner, by: server, at: MachineBench.start)
        #expect(isNews && !isNewsAgain)
    }

    /// For any damage to an advertisement, no row is accepted as its owner's.
    @Test func damagedAdvertisementsAreIgnored() throws {
        let good = try #require(Self.handling.first { $0.name == "good" })
        let owner = try PublicKey(parsing: good.clientPublicKey.bytes)
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<300 {
            let damaged = generator.damaged(good.payloadPlain.data.bytes)
            guard let signed = try? SignedAdvertisement(parsing: damaged) else { continue }
            var directory = Directory(cryptography: IdentityCryptography(identity: .generate()))
            directory.learn(
                advertised: signed.advertisement.pushNotificationInfo, by: signed.owner, from: nil, sentAt: MachineBench.start)
            let isUnchanged = signed.advertisement.encoded() == good.advertisement.bytes.bytes
            #expect(isUnchanged || directory.rows(of: owner).isEmpty)
        }
    }
}
