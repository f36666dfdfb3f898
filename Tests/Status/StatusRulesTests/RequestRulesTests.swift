import StatusRules
import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

/// `PROTOCOL.md`, section 6: the table of reports.
@Suite struct RequestRulesTests {
    private static let client = TestClient(of: PrivateKey.generate().publicKey)
    private static let messageID: [UInt8] = [1, 2, 3]
    private static let stored = StoredRegistration(
        key: client.key, registration: client.registration { $0.mutedChatList = [[7]] }, storedAt: Timestamp(rawValue: 1))
    private static let id = DeliveryID(messageID: messageID, key: client.key)

    private func outcomes(_ entries: [PushNotification], delivery state: DeliveryState? = nil) -> [EntryOutcome] {
        let request = PushNotificationRequest(requests: entries, messageID: Self.messageID)
        return RequestRules(maximumAge: .seconds(300)).decide(request) { key in
            key == Self.client.key ? Self.stored : nil
        } delivery: { id in
            id == Self.id ? state : nil
        }
    }

    private var good: PushNotification { Self.client.notification() }
    private var muted: PushNotification { Self.client.notification { $0.chatID = [7] } }
    private var wrongToken: PushNotification { Self.client.notification { $0.accessToken = AccessToken("another") } }

    @Test func aGoodEntryIsDelivered() {
        #expect(outcomes([good]) == [.deliver(Self.id, good, to: Self.stored)])
        #expect(outcomes([]) == [])
    }

    @Test func typeZeroFailsBeforeAnyOtherCheck() {
        #expect(outcomes([Self.client.notification(.unknown)]) == [.report(.unknown)])
        let entry = Self.client.notification(.unknown) { $0.publicKey = [] }
        #expect(outcomes([entry]) == [.report(.unknown)])
    }

    @Test func anUnknownKeyOrInstallationIsNotRegisteredWhateverTheToken() {
        let stranger = KeyHash(of: PrivateKey.generate().publicKey)
        let entries = [
            Self.client.notification { $0.publicKey = stranger.bytes }, Self.client.notification { $0.publicKey.removeLast() },
            Self.client.notification { $0.publicKey = [] }, Self.client.notification { $0.installationID = InstallationID("another") },
            Self.client.notification { $0.installationID = InstallationID("INSTALLATION-1") },
            Self.client.notification {
                $0.installationID = InstallationID("another")
                $0.accessToken = AccessToken("")
            },
        ]
        #expect(outcomes(entries) == Array(repeating: .report(.notRegistered), count: entries.count))
    }

    @Test func anotherTokenIsWrongAlsoWhereTheEntryWouldBeFiltered() {
        let entries = [
            wrongToken, Self.client.notification { $0.accessToken = AccessToken("") },
            Self.client.notification { $0.accessToken = AccessToken($0.accessToken.revealed.uppercased()) },
            Self.client.notification {
                $0.accessToken = AccessToken("another")
                $0.chatID = [7]
            },
        ]
        #expect(outcomes(entries) == Array(repeating: .report(.wrongToken), count: entries.count))
    }

    @Test func theSenderDoesNotLearnThatItIsFiltered() {
        #expect(outcomes([muted]) == [.report(nil)])
    }

    @Test func acceptedDeliveriesSucceedAndAreNotSentAgain() {
        #expect(outcomes([good], delivery: .accepted) == [.report(nil)])
        #expect(outcomes([good], delivery: .waiting) == [.await(Self.id)])
        // A wrong token is still reported.
        #expect(outcomes([wrongToken], delivery: .accepted) == [.report(.wrongToken)])
    }

    @Test func aDeviceNamedTwiceIsNotifiedOnceByTheFirstEntryThatMayBeSent() {
        let deliver = EntryOutcome.deliver(Self.id, good, to: Self.stored)
        #expect(outcomes([good, good, good]) == [deliver, .await(Self.id), .await(Self.id)])
        #expect(
            outcomes([muted, wrongToken, good, muted, good]) == [
                .report(nil), .report(.wrongToken), deliver, .report(nil), .await(Self.id),
            ])
        // Another text for the same device does not make another delivery.
        let mention = Self.client.notification(.contactRequest)
        #expect(outcomes([mention, good]) == [.deliver(Self.id, mention, to: Self.stored), .await(Self.id)])
    }

    @Test func twoDevicesOfOneRegistrantAreTwoDeliveries() {
        let other = TestClient(of: Self.client.server, identity: Self.client.identity, installationID: InstallationID("installation-2"))
        let request = PushNotificationRequest(requests: [good, other.notification()], messageID: Self.messageID)
        let outcomes = RequestRules(maximumAge: .seconds(300)).decide(request) { key in
            StoredRegistration(key: key, registration: other.registration(), storedAt: Timestamp(rawValue: 1))
        } delivery: { _ in
            nil
        }
        let deliveries = outcomes.compactMap { outcome -> DeliveryID? in
            if case .deliver(let id, _, _) = outcome { id } else { nil }
        }
        #expect(Set(deliveries).count == 2)
    }

    @Test func contentTooLargeForAppleAndGoogleIsAnInternalErrorAndDelaysNoOthers() {
        var large = good
        large.message = [UInt8](repeating: 1, count: PushNotification.contentByteLimit)
        #expect(outcomes([large, good]) == [.report(.internalError), .deliver(Self.id, good, to: Self.stored)])
        // A blocked sender must not learn it by the size.
        var filtered = large
        filtered.chatID = muted.chatID
        #expect(outcomes([filtered]) == [.report(.internalError)])
        var wrong = large
        wrong.accessToken = AccessToken("another")
        #expect(outcomes([wrong]) == [.report(.wrongToken)])
    }

    private struct Unavailable: Error {}

    @Test func errorsOfTheStoreAreRethrown() {
        let request = PushNotificationRequest(requests: [good], messageID: Self.messageID)
        let registration: (RegistrationKey) throws -> StoredRegistration? = { _ in throw Unavailable() }
        let decide = { try RequestRules(maximumAge: .seconds(300)).decide(request, registration: registration) { _ in nil } }
        #expect(throws: Unavailable.self) { try decide() }
    }
}
