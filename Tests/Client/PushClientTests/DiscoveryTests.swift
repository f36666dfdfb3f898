import PushClient
import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// Clients that only send, and checks of the client's own registrations.
@Suite(.timeLimit(.minutes(5))) struct DiscoveryTests {
    private let network = TestNetwork()
    private let bob = PrivateKey.generate()

    private func client(
        _ identity: PrivateKey = .generate(), relay: TestRelay? = nil, servers: [PublicKey] = []
    ) async throws -> StatusPushClient {
        var configuration = StatusPushClient.Configuration()
        configuration.servers = servers.map { PushServer(key: $0) }
        return try await StatusPushClient.open(
            identity: identity, relays: [relay ?? network.relay()], store: MemoryClientStore(), configuration: configuration)
    }

    /// Registers Bob's device with a server, in the background while `body` runs.
    private func withBob(at server: PublicKey, _ body: @escaping @Sendable (StatusPushClient) async throws -> Void) async throws {
        try await client(bob).whileRunning { bob in
            try await bob.register(.phone, with: [PushServer(key: server)], enablesReceiving: true)
            try await body(bob)
        }
    }

    // MARK: Without a server

    @Test(arguments: [true, false])
    func senderWithoutServersFailsAtOnce(hasStore: Bool) async throws {
        let relay = network.relay()
        relay.setStore(hasStore)
        let client = try await client(relay: relay)
        let events = client.events
        try await client.whileRunning { [bob] client in
            client.setSending(true)
            let error = await #expect(throws: PushClientError.self) { try await client.discover(bob.publicKey, timeout: .seconds(240)) }
            #expect(error?.code == .noServerKnown)
            let outcomes = try await client.notify(.to(bob.publicKey))
            #expect(outcomes.map(\.result) == [.gaveUp(.noServerKnown)])
            let named = InstallationID("phone")
            let toDevice = OutgoingNotification(
                messageID: [2], chatID: "chat", kind: .message, recipients: [.init(bob.publicKey, installations: [named])])
            let result1 = try await client.notify(toDevice)
            #expect(result1.map(\.result) == [.gaveUp(.noServerKnown)])
            for await event in events where event == .noServerKnown(bob.publicKey) { return }
        }
    }

    @Test func listedServersAreQueriedWithoutAdvertisement() async throws {
        let server = network.addServer()
        try await withBob(at: server) { [network, bob] _ in
            let relay = network.relay()
            relay.setStore(false)
            try await client(relay: relay, servers: [server]).whileRunning { sender in
                sender.setSending(true)
                let result2 = try await sender.discover(bob.publicKey, timeout: .seconds(60))
                #expect(result2.map(\.server) == [server])
                let result3 = try await sender.notify(.to(bob.publicKey))
                #expect(result3.map(\.result) == [.notified(by: server)])
            }
            // Servers can be listed later as well.
            let late = network.relay()
            late.setStore(false)
            try await client(relay: late).whileRunning { sender in
                await #expect(throws: PushClientError.self) { try await sender.discover(bob.publicKey) }
                sender.setQueryServers([PushServer(key: server)])
                let result4 = try await sender.discover(bob.publicKey, timeout: .seconds(60))
                #expect(result4.count == 1)
            }
        }
    }

    /// A second call must not wait for the network, which is silent here.
    @Test func knownDevicesAreReturnedAtOnce() async throws {
        let server = network.addServer()
        try await withBob(at: server) { [network, bob] _ in
            let relay = network.relay()
            try await client(relay: relay, servers: [server]).whileRunning { sender in
                let result5 = try await sender.discover(bob.publicKey, timeout: .seconds(60))
                #expect(result5.count == 1)
                relay.setConfirming(false)
                network.change(server) { $0.isUp = false }
                let result6 = try await sender.discover(bob.publicKey, timeout: .seconds(240))
                #expect(result6.count == 1)
            }
        }
    }

    // MARK: Without run()

    @Test func callsFailWhileTheClientDoesNotRun() async throws {
        let client = try await client()
        client.setSending(true)
        func code(_ body: () async throws -> Void) async -> PushClientError.Code? {
            do {
                try await body()
                return nil
            } catch {
                return (error as? PushClientError)?.code
            }
        }
        let codes = [
            await code { try await client.register(.phone, with: [PushServer(key: bob.publicKey)], enablesReceiving: true) },
            await code { try await client.discover(bob.publicKey) },
            await code { _ = try await client.notify(.to(bob.publicKey)) },
            await code { _ = try await client.query(bob.publicKey, at: bob.publicKey) },
            await code { _ = try await client.verifyRegistrations() },
        ]
        #expect(codes == Array(repeating: .notRunning, count: 5))
    }

    @Test func publishingIsTriedAgainWithinTheTimeout() async throws {
        let server = network.addServer()
        try await withBob(at: server) { [network, bob] _ in
            let relay = network.relay()
            relay.setFailure(RelayError(code: .unavailable, message: "lightpush is slow"))
            try await client(relay: relay).whileRunning { client in
                async let devices = client.query(bob.publicKey, at: server, timeout: .seconds(240))
                try await eventually { relay.attemptCount > 0 }
                relay.setFailure(nil)
                let count = try await devices.count
                #expect(count == 1)
            }
        }
    }

    @Test func publishingIsGivenUpAfterThreeTries() async throws {
        let relay = network.relay()
        relay.setFailure(RelayError(code: .unavailable, message: "no connection"))
        try await client(relay: relay).whileRunning { client in
            let error = await #expect(throws: PushClientError.self) {
                _ = try await client.query(newKey(), at: newKey(), timeout: .seconds(3600))
            }
            #expect(error?.code == .notPublished && error?.message.contains("no connection") == true)
        }
        #expect(relay.attemptCount == 3)
    }

    @Test func timeoutIncludesPublishing() async throws {
        let relay = network.relay()
        relay.setConfirming(false)
        try await client(relay: relay).whileRunning { [bob] client in
            let error = await #expect(throws: PushClientError.self) {
                try await client.query(bob.publicKey, at: bob.publicKey, timeout: .milliseconds(50))
            }
            #expect(error?.code == .notPublished)
        }
    }

    @Test func cancelledCallsThrowCancelled() async throws {
        let relay = network.relay()
        relay.setConfirming(false)
        try await client(relay: relay).whileRunning { [bob] client in
            let call = Task { try await client.query(bob.publicKey, at: bob.publicKey, timeout: .seconds(240)) }
            try await eventually { relay.confirmingCount == 1 }
            call.cancel()
            let error = await #expect(throws: PushClientError.self) { try await call.value }
            #expect(error?.code == .cancelled)
            // The relay is left alone too.
            try await eventually { relay.confirmingCount == 0 }
        }
    }

    // MARK: Own registrations

    @Test func ownRegistrationIsVerifiedAndNotified() async throws {
        let (server, identity) = (PrivateKey.generate(), bob)
        let key = network.addServer(server)
        try await withBob(at: key) { [network] bob in
            var checks = try await bob.verifyRegistrations(ping: true, timeout: .seconds(60))
            #expect(checks.map(\.finding) == [.matches(version: 1)] && checks.map(\.ping) == [.accepted])
            #expect(checks.allSatisfy(\.isHealthy) && network.notifiedCount(by: key) == 1)
            #expect(checks.map(\.description) == ["\(key): registered, version 1; the server has it, version 1; ping accepted"])

            // Another copy of the client's state registered a later version.
            try await client(identity).whileRunning { copy in
                var other = DeviceProfile.phone
                other.deviceToken = DeviceToken("other-token")
                try await copy.register(other, with: [PushServer(key: key)], enablesReceiving: true)
            }
            checks = try await bob.verifyRegistrations(timeout: .seconds(60))
            #expect(checks.map(\.finding) == [.matches(version: 1)])

            // The server lost its data: like real ones, it does not answer queries about keys without a registration.
            network.change(key) { $0.node = PlainNode(identity: server) }
            checks = try await bob.verifyRegistrations(ping: true, timeout: .seconds(60))
            #expect(checks.map(\.finding) == [.notRegistered] && checks.first?.ping == nil)
            await bob.waitUntilSettled(timeout: .seconds(60))
            checks = try await bob.verifyRegistrations(timeout: .seconds(60))
            #expect(checks.map(\.isHealthy) == [true])

            network.change(key) { $0.isUp = false }
            checks = try await bob.verifyRegistrations(timeout: .milliseconds(300))
            guard case .noAnswer = checks.first?.finding else {
                Issue.record("unexpected finding")
                return
            }
        }
    }
}
