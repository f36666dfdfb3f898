import Foundation
import PushClient
import PushClientSQLite
import Core
import StatusProtocol
import Synchronization
import TestSupport
import Waku
import WakuCrypto

/// A client of the library as in an application, with one device and its state in SQLite: registers it, changes and ends the registration, and
/// requests notifications for other devices. It is killed after some seconds, and opened again.
///
/// The library chooses versions, tokens, repetitions and pauses. ``RegistrationTap`` records its publications in the ledger before they are sent.
final class RememberedPhone: CrashClient {
    /// The times until a kill, and between two actions, in ms.
    private static let lives = 500...5000
    private static let pauses = 20...200
    private static let openingLimit = Duration.seconds(10)

    let client: StatusPushClient
    let identity: PrivateKey
    private let serverIdentity: PrivateKey
    private let ledger: LedgerBox
    private let makeRelay: @Sendable () -> any Relay
    private let folder: String
    private let stopFlag = StopFlag()
    /// The device's number in the ledger, once its installation id is known.
    private let device = Mutex<Int?>(nil)

    init(_ number: Int, stage: Stage, ledger: LedgerBox, makeRelay: @escaping @Sendable () -> any Relay) {
        let identity = PrivateKey.generate()
        self.identity = identity
        self.ledger = ledger
        self.makeRelay = makeRelay
        serverIdentity = stage.identity
        folder = stage.folder.path + "/client-\(number)"
        client = StatusPushClient(identity: identity, relay: makeRelay())
    }

    func run() async {
        await client.run()
    }

    func stop() { stopFlag.set() }

    func live(_ seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        while stopFlag.goesOn {
            do {
                try await liveOnce(&generator)
                ledger.withLock { $0.figures.add(.clientLives) }
            } catch {
                guard stopFlag.goesOn else { return }
                return ledger.withLock { $0.breaks("a client of the library can't be opened: \(error)") }
            }
        }
    }

    /// Runs until the kill.
    private func liveOnce(_ generator: inout SeededGenerator) async throws {
        let opened = try await open()
        let events = opened.events
        let running = Task { await opened.run() }
        opened.setReceiving(true)
        opened.setSending(true)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in events { self.take(event) }
            }
            let end = ContinuousClock.now + .milliseconds(Int.random(in: Self.lives, using: &generator))
            while stopFlag.goesOn, ContinuousClock.now < end {
                act(opened, in: &group, &generator)
                try? await Task.sleep(for: .milliseconds(Int.random(in: Self.pauses, using: &generator)))
            }
            // Cancelled first, so that no effect of the other cancellations is stored.
            running.cancel()
            await running.value
            group.cancelAll()
        }
    }

    /// The previous instance may be about to release the lock.
    private func open() async throws -> StatusPushClient {
        let deadline = ContinuousClock.now + Self.openingLimit
        while true {
            do throws(ClientStoreError) {
                let tap = RegistrationTap(relay: makeRelay(), server: serverIdentity, client: identity.publicKey) { [weak self] in
                    self?.note($0, sealed: $1)
                }
                let store = try SQLiteClientStore(folder: folder, identity: identity)
                let opened = try await StatusPushClient.open(identity: identity, relays: [tap], store: store)
                addDevice(opened.installationID)
                return opened
            } catch {
                guard error.code == .locked, ContinuousClock.now < deadline else { throw error }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    private func addDevice(_ installationID: InstallationID) {
        let key = RegistrationKey(keyHash: KeyHash(of: identity.publicKey), installationID: installationID)
        device.withLock { device in
            if let known = device {
                // It was made by the first instance, and stored before anything was sent.
                let old = ledger.withLock { $0.devices[known] }
                if old.key != key, !old.attempts.isEmpty {
                    ledger.withLock { $0.breaks("\(old.key.installationID) lost its installation id") }
                }
                if old.key == key { return }
            }
            device = ledger.withLock { [identity] in $0.addDevice(key, of: identity.publicKey) }
        }
    }

    private func note(_ registration: PushNotificationRegistration, sealed: [UInt8]) {
        guard let device = device.withLock(\.self) else { return }
        let attempt = Ledger.Attempt(
            deviceToken: registration.deviceToken, accessToken: registration.unregister ? nil : registration.accessToken)
        ledger.withLock { $0.published(attempt, version: registration.version, sealed: sealed, for: device) }
    }

    private func take(_ event: PushClientEvent) {
        guard let device = device.withLock(\.self) else { return }
        switch event {
        case .registered(_, let version):
            ledger.answers.ring()
            ledger.withLock { $0.acknowledged(version, of: device) }
        case .refused(_, let reason): ledger.withLock { $0.breaks("a client of the library was refused: \(reason.rawValue)") }
        case .storeFailed(let reason): ledger.withLock { $0.breaks("a client's state was not kept: \(reason)") }
        case .unregistered, .willRetry, .advertised, .discovered, .advertisementRejected, .notified, .gaveUp, .noServerKnown,
            .relayFailed:
            break
        }
    }

    // MARK: Actions

    private func act(_ client: StatusPushClient, in group: inout TaskGroup<Void>, _ generator: inout SeededGenerator) {
        switch Int.random(in: 0..<100, using: &generator) {
        case ..<10:
            var profile = DeviceProfile(
                platform: .apn, deviceToken: DeviceToken("token-" + hexString(generator.bytes(8))), apnTopic: "im.status.ethereum")
            profile.mutedChats = ["\(Int.random(in: 0..<3, using: &generator))"]
            group.addTask { [profile, serverKey = serverIdentity.publicKey] in
                client.setReceiving(true)
                _ = try? await client.register(profile, with: [PushServer(key: serverKey)], timeout: .seconds(5))
            }
        case ..<12: group.addTask { _ = try? await client.unregister(timeout: .seconds(5)) }
        case ..<50:
            let count = ledger.withLock { $0.devices.count }
            guard count > 0 else { return }
            let (target, messageID) = (Int.random(in: 0..<count, using: &generator), generator.bytes(32))
            group.addTask { await self.notify(target, messageID, client) }
        default: break
        }
    }

    private func notify(_ device: Int, _ messageID: [UInt8], _ client: StatusPushClient) async {
        guard let target = ledger.withLock({ $0.ask(messageID, for: [device]) }).first else { return }
        let registrant = ledger.withLock { $0.devices[device].registrant }
        let message = OutgoingNotification(
            messageID: messageID, chatID: "crash", kind: .message, content: target.delivery.bytes,
            recipients: [.init(registrant, installations: [target.key.installationID])])
        guard let outcomes = try? await client.notify(message) else { return }
        ledger.withLock { ledger in
            for outcome in outcomes {
                guard case .notified = outcome.result else { continue }
                ledger.figures.add(.notifiedByClient)
                ledger.reported(nil, on: target)
            }
        }
    }
}
