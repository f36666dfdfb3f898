import PushClient
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// The common members of `StatusPushClient` and `StatusV01PushClient`, for commands that run either.
protocol RunnableClient: AnyObject, Sendable {
    static func open(
        identity: PrivateKey, relays: [any Relay], store: any ClientStore, configuration: StatusPushClient.Configuration
    ) async throws(ClientStoreError) -> Self

    var publicKey: PublicKey { get }
    var installationID: InstallationID { get }
    var isReceiving: Bool { get }
    var isSending: Bool { get }
    var registrations: [PublicKey: RegistrationStatus] { get }
    var contacts: [PublicKey] { get }
    var events: AsyncStream<PushClientEvent> { get }

    func run() async
    func setReceiving(_ isReceiving: Bool)
    func setSending(_ isSending: Bool)
    func nextTry(at server: PublicKey) -> Duration?
    func devices(of registrant: PublicKey) -> [KnownDevice]
    func hasAnswer(about registrant: PublicKey, timeout: Duration) async -> Bool
    func advertisementFlaw(of registrant: PublicKey) -> AdvertisementFlaw?
    func outcomes(withoutDevicesOf registrant: PublicKey) -> [DeviceOutcome]
    func unregister(timeout: Duration) async throws(PushClientError) -> [PublicKey: RegistrationStatus]
    func waitUntilStored(timeout: Duration) async -> Bool
    func waitUntilAdvertised(timeout: Duration) async
    func waitUntilSettled(timeout: Duration) async
    func notify(_ message: OutgoingNotification) async throws(PushClientError) -> [DeviceOutcome]
}

extension StatusPushClient: RunnableClient {}

extension StatusV01PushClient: RunnableClient {}

extension RunnableClient {
    /// Like ``notify(_:)``, but cancels devices that are not finished after the timeout.
    func notify(_ message: OutgoingNotification, timeout: Duration) async throws -> [DeviceOutcome] {
        try await withThrowingTaskGroup(of: [DeviceOutcome]?.self) { group in
            group.addTask { try await self.notify(message) }
            group.addTask {
                try? await Task.sleep(for: timeout)
                return nil
            }
            defer { group.cancelAll() }
            for try await outcomes in group {
                if let outcomes { return outcomes }
                group.cancelAll()
            }
            throw CancellationError()
        }
    }
}

/// A running client, for one command.
struct RunningClient<Client: RunnableClient>: Sendable {
    let client: Client
    private let relays: ClientRelays
    private let failures = LastFailures()

    /// Why nothing was published; nil when the relays and the store work.
    var obstacle: String? { relays.obstacle ?? failures.relay.withLock(\.self) ?? failures.store.withLock(\.self) }

    /// Opens the client of a folder, and runs it during `body`. Changes made by `prepare` and `body` are stored when this returns.
    ///
    /// - Parameter prepare: called before the client runs, and so before it advertises its devices.
    /// - Throws: ``CommandFailure``, and errors of `body`.
    static func run<R: Sendable>(
        _ folder: ClientFolder, _ options: ClientOptions, prepare: @Sendable (Client) -> Void = { _ in },
        body: @Sendable @escaping (RunningClient) async throws -> R
    ) async throws -> R {
        let relays = try options.makeRelays()
        let client = try await folder.open(as: Client.self, relays.all, options.configuration)
        prepare(client)
        return try await RunningClient(client: client, relays: relays).run(options, body)
    }

    /// Runs a client that keeps no state during `body`.
    ///
    /// - Throws: ``CommandFailure``, and errors of `body`.
    static func run<R: Sendable>(
        forgetting identity: PrivateKey, _ options: ClientOptions, body: @Sendable @escaping (RunningClient) async throws -> R
    ) async throws -> R {
        let relays = try options.makeRelays()
        let client: Client
        do throws(ClientStoreError) {
            client = try await Client.open(
                identity: identity, relays: relays.all, store: MemoryClientStore(), configuration: options.configuration)
        } catch {
            throw CommandFailure(error)
        }
        return try await RunningClient(client: client, relays: relays).run(options, body)
    }

    private func run<R: Sendable>(
        _ options: ClientOptions, _ body: @Sendable @escaping (RunningClient) async throws -> R
    ) async throws -> R {
        let events = client.events
        return try await options.running(client, on: relays) { [self] in
            try await firstResult {
                let result = try await body(self)
                guard await client.waitUntilStored(timeout: .seconds(5)) else {
                    let reason = failures.store.withLock(\.self)
                    throw CommandFailure(.unavailable, "the client's changes were not stored: \(reason ?? "the store takes too long")")
                }
                return result
            } beside: {
                for await event in events {
                    switch event {
                    case .relayFailed(let reason): failures.relay.withLock { $0 = reason }
                    case .storeFailed(let reason): failures.store.withLock { $0 = reason }
                    default: break
                    }
                }
            }
        }
    }
}

typealias ClientSession = RunningClient<StatusPushClient>
typealias V01ClientSession = RunningClient<StatusV01PushClient>

private final class LastFailures: Sendable {
    let relay = Mutex<String?>(nil)
    let store = Mutex<String?>(nil)
}
