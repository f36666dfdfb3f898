import Delivery
import Core
import SessionProtocol
import StatusProtocol
package import Storage
import TestSupport
import Waku
import WakuCrypto

@testable import PushNode
@testable import SessionServer
@testable import StatusServer
@testable import StatusV01Server

/// Rows in every table of every part, written by the code of the node.
package enum NodeRows {
    private static let now = Timestamp.now()

    package static func write(to store: any Store) async throws {
        try await writeStatus(store)
        try await writeV01(store)
        try await writeSession(store)
        try await store.commit(.change(NodeStorage.remember([MessageHash(bytes: randomBytes(32))], at: now)))
    }

    static func writeTopicKey(_ topic: String, to store: any Store) async throws {
        try await store.commit(.change([TopicKeyStorage(store.sealer).keep(.random(), of: topic)]))
    }

    private static func writeStatus(_ store: any Store) async throws {
        let (client, gone) = (TestClient(of: PrivateKey.generate().publicKey), TestClient(of: PrivateKey.generate().publicKey))
        for (index, client) in [client, gone].enumerated() {
            // The highest version, and one whose bits are those of a negative number.
            let registration = client.registration { $0.version = .max - UInt64(index) }
            try await store.commit(
                Registrations(store.sealer).store(registration, bytes: registration.encoded(), as: client.key, at: now))
        }
        try await store.commit(Registrations.unregister(gone.key, version: .max, at: now))
        try await writeTopicKey(StatusTopics.query(client.keyHash), to: store)
        try await store.commit(.change([AnswerStorage.remember([0, 1], to: randomBytes(32), at: now)]))
        guard let row = try store.read(Registrations.head(of: client.key))?.id else { throw UnexpectedValue() }
        let device = DeviceID(StatusStorage.protocolNumber, row: row)
        let waiting = DeliveryStorage.enqueue(
            DeliveryID(messageID: [1], key: client.key), for: device, payload: [1, 2, 3], expires: now, by: store.sealer)
        let posted = PostedNotification(delivery: DeliveryID(messageID: [2], key: client.key), device: device, version: .max)
        try await store.commit(
            .change(
                [waiting, DeliveryStorage.setDoubt(TokenDoubt(version: .max, at: now), of: device)]
                    + DeliveryStorage.accept(posted, postedAs: nil, at: now)))
    }

    private static func writeV01(_ store: any Store) async throws {
        let account = V01Account(of: PrivateKey.generate().publicKey, devices: [V01Account.device("phone"), V01Account.device("")])
        let preferences = account.preferences(version: .max)
        try await store.commit(
            .change(
                Records(store.sealer).store(
                    preferences, payload: preferences.encoded(), as: account.keyHash, mark: nil, replacing: nil, devices: [:], at: now)
                    + Records.retire(randomBytes(32), of: account.keyHash, at: now) + [
                        V01Answers.remember(nil, to: randomBytes(32), at: now)
                    ]))
    }

    private static func writeSession(_ store: any Store) async throws {
        let (account, device, gone) = (try SessionAccount.sessionID(), SessionDevice(), SessionDevice(.apns))
        let subscriptions = Subscriptions(store.sealer)
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: 10)
        let requests: [SessionRequest] = [
            .subscribe(account.subscription(device)), .subscribe(account.subscription(gone, at: .now - 1)),
            // From a phone whose clock is an hour ahead.
            .subscribe(account.subscription(SessionDevice(), at: .now + 3600)),
            .unsubscribe(account.unsubscription(gone)),
        ]
        for request in requests { try await store.commit(subscriptions.apply([request], rules, at: .now) { _ in nil }) }
        try await store.commit(
            .change([Subscriptions.noteSeen(DeliveryID(messageID: [3], key: TestClient(of: PrivateKey.generate().publicKey).key), at: now)])
        )
    }
}
