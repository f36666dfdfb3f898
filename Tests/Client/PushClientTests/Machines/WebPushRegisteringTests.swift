import Core
import StatusProtocol
import Testing
import WakuCrypto

@testable import PushClient

/// Registering Web Push subscriptions: each server is told its own VAPID key.
@Suite struct WebPushRegisteringTests {
    private let first = newKey()
    private let second = newKey()
    private let key = P256PrivateKey.generate().publicKey
    private let otherKey = P256PrivateKey.generate().publicKey
    private let keys = WebPushKeys(publicKey: P256PrivateKey.generate().publicKey, secret: randomBytes(WebPushKeys.secretByteCount))

    private func profile(naming named: P256PublicKey? = nil) throws -> DeviceProfile {
        let keys = try #require(keys)
        return DeviceProfile(webPush: try #require(PushSubscription(endpoint: "https://push.example/a", keys: keys, vapidKey: named)))
    }

    private func server(_ server: PublicKey, _ key: P256PublicKey) -> PushServer {
        PushServer(key: server, vapidKey: Base64URL.encode(key.bytes))
    }

    private func namedKey(_ bench: MachineBench, _ sent: SentRegistration<DeployedVersion>?) throws -> P256PublicKey? {
        let sent = try #require(sent)
        let token = try bench.registration(sent.sealed).deviceToken
        return try #require(PushSubscription(json: token.bytes)).vapidKey
    }

    @Test func eachServerIsToldItsOwnKey() throws {
        var bench = MachineBench()
        bench.take(bench.machine.register(try profile(), with: [server(first, key), server(second, otherKey)]))
        let sent = bench.publishAll().registrations
        #expect(try namedKey(bench, sent.first { $0.server == first }) == key)
        #expect(try namedKey(bench, sent.first { $0.server == second }) == otherKey)
    }

    @Test func aChangedKeyIsRegistered() throws {
        var bench = MachineBench()
        let profile = try profile()
        bench.take(bench.machine.register(profile, with: [server(first, key)]))
        // Changed again before the answer.
        for next in [otherKey, key] {
            let sent = bench.publishAll().registrations
            bench.take(bench.machine.register(profile, with: [server(first, next)]))
            bench.answer(try #require(sent.first))
        }
        let sent = try #require(bench.publishAll().registrations.first)
        #expect(try namedKey(bench, sent) == key && bench.registration(sent.sealed).version == 3)
        bench.answer(sent)
        bench.take(bench.machine.register(profile, with: [server(first, key)]))
        #expect(bench.publishAll().registrations.isEmpty)
    }

    @Test func aKeyIsAddedWhereNoneIsNamed() throws {
        let (named, unnamed) = (try profile(naming: key).deviceToken, try profile().deviceToken)
        #expect(try unnamed.naming(Base64URL.encode(key.bytes)) == named)
        #expect(try named.naming(Base64URL.encode(key.bytes)) == named)
        #expect(throws: PushClientError.otherVAPIDKey) { try named.naming(Base64URL.encode(otherKey.bytes)) }
        for text in ["", "BN", "?"] { #expect(throws: PushClientError.unusableVAPIDKey) { try unnamed.naming(text) } }
    }

    /// Both calls check before they send.
    @Test func aSubscriptionForAnotherKeyIsRefused() async throws {
        let client = StatusPushClient(identity: .generate(), relay: TestNetwork().relay())
        let profile = try profile(naming: key)
        await #expect(throws: PushClientError.otherVAPIDKey) {
            try await client.register(profile, with: [server(first, key), server(second, otherKey)], enablesReceiving: true)
        }
        await #expect(throws: PushClientError.otherVAPIDKey) {
            try await client.register(
                profile, as: InstallationID("phone"), accessToken: .random(), version: 1, with: first,
                vapidKey: Base64URL.encode(otherKey.bytes))
        }
    }
}
