import NodeAPI
import Core
import NodeAssembly
import SessionProtocol
import StatusProtocol
import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import SessionServer
@testable import StatusServer

extension StoreContract {
    private static let now = Timestamp.now()

    private static func subscription(_ key: P256PublicKey?) throws -> PushSubscription {
        let keys = try #require(WebPushKeys(publicKey: P256PrivateKey.generate().publicKey, secret: randomBytes(16)))
        return try #require(
            PushSubscription(endpoint: "https://push.example/" + Base64URL.encode(randomBytes(16)), keys: keys, vapidKey: key))
    }

    private static func register(
        _ client: TestClient, _ key: P256PublicKey?, version: UInt64 = 1, in store: any Store
    ) async throws {
        let token = DeviceToken(bytes: try subscription(key).json)
        let registration = client.registration {
            ($0.tokenType, $0.deviceToken, $0.version) = (Platform.webPushTokenType, token, version)
        }
        try await store.commit(Registrations(store.sealer).store(registration, bytes: registration.encoded(), as: client.key, at: now))
    }

    private static func statusCounts(_ store: any Store) throws -> [Int64: Int] {
        try store.read(Registrations.figures()).devices.webPushKeys
    }

    static var webPushKeys: [StoreContract] {
        [
            StoreContract("Registrations are counted by the VAPID key that their subscriptions name") { fixture in
                let store = try fixture.open(NodeAssembly.parts)
                let (first, second) = (P256PrivateKey.generate().publicKey, P256PrivateKey.generate().publicKey)
                let clients = (0..<3).map { _ in TestClient(of: PrivateKey.generate().publicKey) }
                for client in clients { try await register(client, first, in: store) }
                try await register(TestClient(of: PrivateKey.generate().publicKey), nil, in: store)
                #expect(try statusCounts(store) == [VAPIDKey.mark(of: first): 3])
                // One client subscribes for another key, one for none, and one unregisters and registers again.
                try await register(clients[0], second, version: 2, in: store)
                try await register(clients[1], nil, version: 2, in: store)
                try await store.commit(Registrations.unregister(clients[2].key, version: 2, at: now))
                #expect(try statusCounts(store) == [VAPIDKey.mark(of: second): 1])
                try await register(clients[2], second, version: 3, in: store)
                #expect(try statusCounts(store) == [VAPIDKey.mark(of: second): 2])
            },
            StoreContract("Session's subscriptions are counted by the VAPID key that they name") { fixture in
                let store = try fixture.open(NodeAssembly.parts)
                let subscriptions = Subscriptions(store.sealer)
                let (first, second) = (P256PrivateKey.generate().publicKey, P256PrivateKey.generate().publicKey)
                let account = try SessionAccount.sessionID()
                func subscribe(_ subscription: PushSubscription, at time: Int64) async throws {
                    let device = SessionDevice(.webPush, token: String(decoding: subscription.json, as: UTF8.self))
                    let rules = SubscriptionRules(availableServices: [.webPush], maximumDevicesPerAccount: 100)
                    let form = account.subscription(device, at: time)
                    let applied = try await store.commit(subscriptions.apply([.subscribe(form)], rules, at: time) { _ in nil })
                    #expect(applied.answers.count == 1)
                }
                let (one, other) = (try subscription(first), try subscription(nil))
                try await subscribe(one, at: .now)
                try await subscribe(other, at: .now)
                #expect(try store.read(Subscriptions.figures(at: .now)).webPushKeys == [VAPIDKey.mark(of: first): 1])
                // The same endpoint, renewed for another key.
                let renewed = try #require(PushSubscription(endpoint: one.endpoint, keys: one.keys, vapidKey: second))
                try await subscribe(renewed, at: .now + 1)
                #expect(try store.read(Subscriptions.figures(at: .now)).webPushKeys == [VAPIDKey.mark(of: second): 1])
                #expect(try store.read(Subscriptions.figures(at: .now)).services == [.webPush: 2])
            },
            StoreContract("Registrations of a release without VAPID keys in their rows are kept, and counted once they are renewed") {
                fixture in
                guard case .create(let old) = StatusStorage.part.migrations[0].steps[0] else { throw UnexpectedValue() }
                let others = NodeAssembly.parts.filter { $0.name != StatusStorage.part.name }
                let before = StorePart(
                    StatusStorage.part.name, tables: [old] + StatusStorage.part.tables.dropFirst(),
                    migrations: Array(StatusStorage.part.migrations.prefix(1)))
                let client = TestClient(of: PrivateKey.generate().publicKey)
                let registration = client.registration {
                    ($0.tokenType, $0.deviceToken) = (Platform.webPushTokenType, DeviceToken("{}"))
                }
                let earlier = try fixture.open([before] + others)
                let insert = Mutation(
                    old,
                    .insert([
                        StatusStorage.keyHash, StatusStorage.installation, StatusStorage.version, StatusStorage.changedAt,
                        StatusStorage.platform, StatusStorage.sealed,
                    ]))
                let sealed = earlier.sealer.seal(
                    registration.encoded(), in: old, boundTo: Registrations.binding(client.key, registration.version))
                try await earlier.commit(
                    .change([
                        insert(
                            .bytes(client.key.keyHash.bytes), .bytes(client.key.installationID.bytes), .integer(1),
                            .integer(now.rawValue), .integer(Int64(Platform.webPush.rawValue)), sealed)
                    ]))
                try earlier.close()

                let store = try fixture.open(NodeAssembly.parts)
                #expect(try store.read(Registrations.figures()).devices.registered == [.webPush: 1])
                #expect(try statusCounts(store) == [:])
                let key = P256PrivateKey.generate().publicKey
                try await register(client, key, version: 2, in: store)
                #expect(try statusCounts(store) == [VAPIDKey.mark(of: key): 1])
            },
            StoreContract("VAPID keys of subscriptions are moved to another database") { fixture in
                let (source, target) = (try fixture.open(NodeAssembly.parts), try fixture.openOther(NodeAssembly.parts))
                let key = P256PrivateKey.generate().publicKey
                let client = TestClient(of: PrivateKey.generate().publicKey)
                try await register(client, key, in: source)
                // Export and import go through records.
                var records: [RegistrationRecord] = []
                try Registrations(source.sealer).forEachRecord(in: source) {
                    records.append($0)
                    return true
                }
                for record in records { #expect(try await target.commit(Registrations(target.sealer).merge(record))) }
                #expect(try statusCounts(target) == [VAPIDKey.mark(of: key): 1])
            },
        ]
    }
}
