import PushClient
import StatusProtocol
import Testing
import WakuCrypto

/// The part that both clients have in common, for tests of both.
protocol TestedClient: AnyObject, Sendable {
    var events: AsyncStream<PushClientEvent> { get }
    var isReceiving: Bool { get }
    var isSending: Bool { get }
    var registrations: [PublicKey: RegistrationStatus] { get }
    var wantedServers: [PublicKey] { get }

    func run() async
    func setReceiving(_ isReceiving: Bool)
    func setSending(_ isSending: Bool)
    func register(
        _ profile: DeviceProfile, with servers: [PublicKey], enablesReceiving: Bool, timeout: Duration
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus]
    func unregister(timeout: Duration) async throws(PushClientError) -> [PublicKey: RegistrationStatus]
    func discover(_ registrant: PublicKey, timeout: Duration) async throws(PushClientError) -> [KnownDevice]
    func notify(_ message: OutgoingNotification) async throws(PushClientError) -> [DeviceOutcome]
    @discardableResult
    func waitUntilStored(timeout: Duration) async -> Bool
}

extension TestedClient {
    /// Runs the client until `body` returns.
    func whileRunning<R: Sendable>(_ body: @escaping @Sendable (Self) async throws -> R) async throws -> R {
        try await withThrowingTaskGroup(of: R?.self) { group in
            group.addTask {
                await self.run()
                return nil
            }
            group.addTask { try await body(self) }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    @discardableResult
    func register(
        _ profile: DeviceProfile = .phone, with servers: [PublicKey], enablesReceiving: Bool = false
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        try await register(profile, with: servers, enablesReceiving: enablesReceiving, timeout: .seconds(30))
    }
}

extension StatusPushClient: TestedClient {
    func register(
        _ profile: DeviceProfile, with servers: [PublicKey], enablesReceiving: Bool, timeout: Duration
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        try await register(profile, with: servers.map { PushServer(key: $0) }, enablesReceiving: enablesReceiving, timeout: timeout)
    }
}

extension StatusV01PushClient: TestedClient {
    func register(
        _ profile: DeviceProfile, with servers: [PublicKey], enablesReceiving: Bool, timeout: Duration
    ) async throws(PushClientError) -> [PublicKey: RegistrationStatus] {
        var own = V01DeviceProfile(platform: .firebase, deviceToken: profile.deviceToken)
        own.contactsOnly = profile.contactsOnly
        own.contacts = profile.contacts
        own.blockedChats = profile.mutedChats
        return try await register(own, with: servers, enablesReceiving: enablesReceiving, timeout: timeout)
    }

    func discover(_ registrant: PublicKey, timeout: Duration) async throws(PushClientError) -> [KnownDevice] {
        try await discover(registrant, askingAlso: [], timeout: timeout)
    }
}

enum ClientVersion: CaseIterable {
    case deployed, v01
}

extension TestNetwork {
    func client(
        _ version: ClientVersion, _ identity: PrivateKey = .generate(), store: any ClientStore = MemoryClientStore(),
        relay: TestRelay? = nil
    ) async throws -> any TestedClient {
        let relays = [relay ?? self.relay()]
        return switch version {
        case .deployed: try await StatusPushClient.open(identity: identity, relays: relays, store: store)
        case .v01: try await StatusV01PushClient.open(identity: identity, relays: relays, store: store)
        }
    }

    /// Registers and advertises a device with the servers.
    func register(
        _ version: ClientVersion, _ profile: DeviceProfile = .phone, with servers: [PublicKey], _ identity: PrivateKey,
        store: any ClientStore = MemoryClientStore()
    ) async throws {
        try await client(version, identity, store: store).whileRunning { client in
            let events = client.events
            let states = try await client.register(profile, with: servers, enablesReceiving: true)
            #expect(states == Dictionary(uniqueKeysWithValues: servers.map { ($0, .registered(version: 1)) }))
            // The last server may be advertised slightly later.
            for await event in events {
                if case .advertised(rowCount: servers.count) = event { return }
            }
        }
    }
}

extension OutgoingNotification {
    static func to(_ registrant: PublicKey, id: [UInt8] = [1]) -> OutgoingNotification {
        OutgoingNotification(messageID: id, chatID: "chat", kind: .message, content: [1, 2], recipients: [.init(registrant)])
    }
}
