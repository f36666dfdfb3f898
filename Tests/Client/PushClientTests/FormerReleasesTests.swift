import Foundation
import Core
import Testing
import WakuCrypto

@testable import PushClient

/// States that this release writes and release 0.1.0 reads, as after an application went back.
@Suite struct FormerReleasesTests {
    /// The parts of the record that decide whether 0.1.0 can read it.
    private struct FormerMessage: Decodable {
        enum Reason: String, Decodable { case noDevice, noServer, expired, cancelled }
        enum Outcome: Decodable {
            case notified(by: StoredServer)
            case notAllowed
            case gaveUp(Reason)
        }
        enum State: Decodable {
            case ready, querying
            case asking(StoredServer, deadline: StoredTime?)
            case askingAgain(StoredServer, at: StoredTime)
            case resting(until: StoredTime)
            case done(Outcome)
        }
        struct Device: Decodable { let state: State }
        struct Failed: Decodable { let reason: Reason }

        let devices: [Device]
        let failed: [Failed]
    }

    private static let reasons: [DeviceOutcome.GiveUpReason] = [
        .noDevice, .noServerKnown, .notRegistered, .noServer, .expired, .cancelled,
    ]

    @Test(arguments: reasons) func reasonsAreReadByFormerReleasesAndKeptByThisOne(reason: DeviceOutcome.GiveUpReason) throws {
        let friend = PrivateKey.generate().publicKey
        var record = MessageRecord(
            messageID: [1], chatHash: [2], authorHash: [3], kind: 1, content: [], begun: Timestamp(rawValue: 1), recipients: [])
        record.devices = [.init(registrant: friend, installationID: InstallationID("phone"), state: .done(.gaveUp(reason)))]
        record.failed = [.init(registrant: friend, reason: reason)]
        let message = ClientRecord.message(record)
        let bytes = try message.encoded()
        #expect(bytes.first == 1)
        let former = try JSONDecoder().decode(FormerMessage.self, from: Data(bytes.dropFirst()))
        guard case .done(.gaveUp(let stored)) = try #require(former.devices.first).state else {
            Issue.record("another state")
            return
        }
        #expect(former.failed.map(\.reason) == [stored])
        let read = try ClientRecord(ClientRecord.name(of: message.key), bytes)
        #expect(read == message)
        guard case .message(let record) = read else { return }
        #expect(record.outcomes.map(\.result) == [.gaveUp(reason), .gaveUp(reason)])
    }

    /// A reason that only a later release knows.
    @Test func aReasonOfALaterReleaseIsReadAsTheFormerOne() throws {
        let outcome = MessageRecord.Outcome.gaveUp(.noServer, exact: "later")
        let read = try JSONDecoder().decode(MessageRecord.Outcome.self, from: try JSONEncoder().encode(outcome))
        #expect(read.result == .gaveUp(.noServer))
        // As the builds between the two releases have written it.
        let between = Data(#"{"gaveUp":{"_0":"notRegistered"}}"#.utf8)
        #expect(try JSONDecoder().decode(MessageRecord.Outcome.self, from: between).result == .gaveUp(.notRegistered))
    }

    /// 0.1.0 refuses all formats but 1 as those of a later version.
    @Test func aWebPushDeviceIsOfALaterFormat() throws {
        let keys = try #require(
            WebPushKeys(publicKey: P256PrivateKey.generate().publicKey, secret: randomBytes(WebPushKeys.secretByteCount)))
        let subscription = try #require(PushSubscription(endpoint: "https://push.example/a", keys: keys))
        let profiles = [
            (DeviceProfile(platform: .firebase, deviceToken: DeviceToken("token"), apnTopic: ""), 1 as UInt8),
            (DeviceProfile(webPush: subscription), 2),
        ]
        for (profile, format) in profiles {
            var own = OwnRecord(installationID: InstallationID("phone"), time: Timestamp(rawValue: 1))
            own.profile = profile
            let record = ClientRecord.own(own)
            let bytes = try record.encoded()
            #expect(bytes.first == format)
            #expect(try ClientRecord(ClientRecord.name(of: record.key), bytes) == record)
        }
        let error = #expect(throws: ClientStoreError.self) { try ClientRecord("own", [3]) }
        #expect(error?.code == .newer)
    }
}
