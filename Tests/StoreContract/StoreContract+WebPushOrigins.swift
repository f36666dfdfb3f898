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

/// The number of Web Push devices by push service.
extension StoreContract {
    private static let now = Timestamp.now()

    private static func subscription(_ endpoint: String) throws -> PushSubscription {
        let keys = try #require(WebPushKeys(publicKey: P256PrivateKey.generate().publicKey, secret: randomBytes(16)))
        return try #require(PushSubscription(endpoint: endpoint, keys: keys))
    }

    private static func count(_ origin: String, in store: any Store) throws -> Int {
        let mark = Registrations(store.sealer).originMark(of: try subscription(origin + "/x"))
        return try store.read(Registrations.deviceCount(ofOrigin: mark))
    }

    private static func register(_ client: TestClient, _ endpoint: String, version: UInt64, in store: any Store) async throws {
        let token = DeviceToken(bytes: try subscription(endpoint).json)
        let registration = client.registration { ($0.tokenType, $0.deviceToken, $0.version) = (Platform.webPushTokenType, token, version) }
        try await store.commit(Registrations(store.sealer).store(registration, bytes: registration.encoded(), as: client.key, at: now))
    }

    static var webPushOrigins: [StoreContract] {
        [
            StoreContract("Registrations are counted by the push service of their endpoints, also after a move of the store") { fixture in
                let (store, target) = (try fixture.open(NodeAssembly.parts), try fixture.openOther(NodeAssembly.parts))
                let (one, other) = ("https://push.example", "https://other.example")
                let clients = (0..<3).map { _ in TestClient(of: PrivateKey.generate().publicKey) }
                for client in clients { try await register(client, "https://PUSH.example:443/a", version: 1, in: store) }
                #expect(try count(one, in: store) == 3 && count(other, in: store) == 0)
                // An update, a move, and an end with its return.
                try await register(clients[0], one + "/b", version: 2, in: store)
                try await register(clients[1], other + "/a", version: 2, in: store)
                try await store.commit(Registrations.unregister(clients[2].key, version: 2, at: now))
                #expect(try count(one, in: store) == 1 && count(other, in: store) == 1)
                try await register(clients[2], one + "/c", version: 3, in: store)
                #expect(try count(one, in: store) == 2)
                let phone = clients[0].registration(version: 3)
                try await store.commit(
                    Registrations(store.sealer).store(phone, bytes: phone.encoded(), as: clients[0].key, at: now))
                #expect(try count(one, in: store) == 1)

                _ = try await StoreTransfer(from: store, to: target, named: "there").run()
                let mark = Registrations(store.sealer).originMark(of: try subscription(one + "/x"))
                #expect(try target.read(Registrations.deviceCount(ofOrigin: mark)) == 1)
            },
            StoreContract("A registration of a release without origins in its rows is taken for a device of any push service") { fixture in
                let store = try fixture.open(NodeAssembly.parts)
                let client = TestClient(of: PrivateKey.generate().publicKey)
                try await register(client, "https://push.example/a", version: 1, in: store)
                let mark = Registrations(store.sealer).originMark(of: try subscription("https://push.example/x"))
                func isDevice(_ mark: Int64) throws -> Bool? {
                    try store.read(Registrations.head(of: client.key))?.isDevice(ofOrigin: mark)
                }
                #expect(try isDevice(mark) == true && isDevice(mark + 1) == false)
                let forget = Mutation(
                    StatusStorage.registration, .update([StatusStorage.webPushOrigin], where: [.equal(StatusStorage.keyHash)]))
                try await store.commit(.change([forget(.null, .bytes(client.keyHash.bytes))]))
                #expect(try isDevice(mark) == true && isDevice(mark + 1) == true)
                try await store.commit(Registrations.unregister(client.key, version: 2, at: now))
                #expect(try isDevice(mark) == false)
            },
            StoreContract("Session refuses further devices of a push service; renewals pass, and ends make room") { fixture in
                let store = try fixture.open(NodeAssembly.parts)
                let subscriptions = Subscriptions(store.sealer)
                let rules = SubscriptionRules(availableServices: [.webPush, .firebase], maximumDevicesPerOrigin: 2)
                let account = try SessionAccount.sessionID()
                func device(_ endpoint: String) throws -> SessionDevice {
                    SessionDevice(.webPush, token: String(decoding: try subscription(endpoint).json, as: UTF8.self))
                }
                func apply(_ requests: SessionRequest...) async throws -> AppliedRequests {
                    try await store.commit(subscriptions.apply(requests, rules, at: .now) { _ in nil })
                }
                func subscribing(_ device: SessionDevice, at time: Int64 = .now) -> SessionRequest {
                    .subscribe(account.subscription(device, at: time))
                }
                let (a, b, c) = (
                    try device("https://push.example/a"), try device("https://push.example/b"), try device("https://push.example/c")
                )
                // The second sees the first, in one body.
                let first = try await apply(subscribing(a), subscribing(b), subscribing(c))
                #expect(first.answers == [.added, .added, .failed(.limited)] && first.fullOriginCount == 1)
                let renewed = try await apply(subscribing(a, at: .now + 1))
                #expect(renewed.answers == [.updated])
                let others = try await apply(subscribing(try device("https://other.example/c")), subscribing(SessionDevice(.firebase)))
                #expect(others.answers == [.added, .added])
                let changed = try await apply(.unsubscribe(account.unsubscription(b)), subscribing(c))
                #expect(changed.answers == [.removed(true), .added])
                let full = try await apply(subscribing(try device("https://push.example/d")))
                #expect(full.answers == [.failed(.limited)])
            },
            StoreContract("A Session device that takes the place of another of its push service is counted once") { fixture in
                let store = try fixture.open(NodeAssembly.parts)
                let subscriptions = Subscriptions(store.sealer)
                let rules = SubscriptionRules(availableServices: [.webPush], maximumDevicesPerAccount: 1, maximumDevicesPerOrigin: 1)
                let (account, other) = (try SessionAccount.sessionID(), try SessionAccount.sessionID())
                func subscribing(_ account: SessionAccount, _ endpoint: String, at time: Int64) throws -> SessionRequest {
                    let device = SessionDevice(.webPush, token: String(decoding: try subscription(endpoint).json, as: UTF8.self))
                    return .subscribe(account.subscription(device, at: time))
                }
                func apply(_ requests: [SessionRequest], at time: Int64) async throws -> [RequestAnswer] {
                    try await store.commit(subscriptions.apply(requests, rules, at: time) { _ in nil }).answers
                }
                let (a, b) = ("https://push.example/a", "https://push.example/b")
                let start = Int64.now
                #expect(try await apply([subscribing(account, a, at: start)], at: start) == [.added])
                #expect(try await apply([subscribing(other, b, at: start)], at: start) == [.failed(.limited)])
                // The only place of the account, and of the push service.
                let moved = try await apply(
                    [subscribing(account, b, at: start + 60), subscribing(other, a, at: start + 60)], at: start + 60)
                #expect(moved == [.added, .failed(.limited)])
                // The expired row of the device itself.
                let later = start + 60 + 15 * .day
                #expect(try await apply([subscribing(account, b, at: later)], at: later) == [.added])
                #expect(try await apply([subscribing(other, a, at: later)], at: later) == [.failed(.limited)])
            },
        ]
    }
}
