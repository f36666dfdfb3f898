import Foundation
import PushClient
import Core
import StatusProtocol
import Synchronization
import TestSupport
import Waku
import WakuCrypto

/// A client that loads the daemon under test.
protocol CrashClient: AnyObject, Sendable {
    var identity: PrivateKey { get }
    /// Sends one-shot requests in checks, while ``run()`` runs.
    var client: StatusPushClient { get }

    func run() async
    /// Performs actions one after the other until ``stop()``.
    func live(_ seed: UInt64) async
    func stop()
}

/// A registrant with some devices. One action at a time, it registers them, changes and ends registrations, and requests notifications for other
/// devices; like real clients, it repeats requests without an answer in time.
final class Phone: CrashClient {
    private static let deviceLimits = [1, 25, 25]
    private static let timeouts: [Duration] = [.milliseconds(400), .seconds(1), .seconds(3)]
    /// One request in this number is for many devices, so that it is committed in parts.
    private static let largeRequestPeriod = 20
    /// The pause between two actions, in ms.
    private static let pauses = 0...60

    let client: StatusPushClient
    let identity = PrivateKey.generate()
    private let number: Int
    private let server: PublicKey
    private let ledger: LedgerBox
    private let stopFlag = StopFlag()

    init(_ number: Int, server: PublicKey, ledger: LedgerBox, relay: any Relay) {
        self.number = number
        self.server = server
        self.ledger = ledger
        client = StatusPushClient(identity: identity, relay: relay)
    }

    func run() async {
        await client.run()
    }

    /// Stops after the current action.
    func stop() { stopFlag.set() }

    /// Runs until ``stop()``.
    func live(_ seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        var own: [Int] = []
        // Some clients have only one device, so that often none is registered.
        let deviceLimit = Self.deviceLimits[number % Self.deviceLimits.count]
        while stopFlag.goesOn {
            switch Int.random(in: 0..<100, using: &generator) {
            case ..<12 where own.count < deviceLimit:
                let id = InstallationID("phone-\(number)-device-\(own.count)")
                let key = RegistrationKey(keyHash: KeyHash(of: identity.publicKey), installationID: id)
                own.append(ledger.withLock { [identity] in $0.addDevice(key, of: identity.publicKey) })
                await register(own[own.count - 1], &generator)
            case ..<35:
                if let device = own.randomElement(using: &generator) { await register(device, &generator) }
            case ..<42:
                if let device = own.randomElement(using: &generator) { await unregister(device, &generator) }
            case ..<85:
                await notify(&generator)
            default:
                await notifyAgain(&generator)
            }
            try? await Task.sleep(for: .milliseconds(Int.random(in: Self.pauses, using: &generator)))
        }
    }

    // MARK: Registering

    private func register(_ index: Int, _ generator: inout SeededGenerator) async {
        let device = ledger.withLock { $0.devices[index] }
        let keepsToken = Int.random(in: 0..<3, using: &generator) > 0
        let token = keepsToken ? device.attempts[device.highestVersion]?.accessToken : nil
        let attempt = Ledger.Attempt(
            deviceToken: DeviceToken("token-" + hexString(generator.bytes(8))),
            accessToken: token ?? AccessToken(hexString(generator.bytes(16))))
        let version = makeAttempt(attempt, index, &generator)
        let profile = DeviceProfile(
            platform: Bool.random(using: &generator) ? .apn : .firebase, deviceToken: attempt.deviceToken, apnTopic: "im.status.ethereum")
        await untilAnswered(version, of: index, &generator) { [client, server] timeout throws(PushClientError) in
            try await client.register(
                profile, as: device.key.installationID, accessToken: attempt.accessToken ?? AccessToken(""), version: version,
                with: server, timeout: timeout)
        }
    }

    private func unregister(_ index: Int, _ generator: inout SeededGenerator) async {
        let version = makeAttempt(Ledger.Attempt(deviceToken: DeviceToken(""), accessToken: nil), index, &generator)
        let id = ledger.withLock { $0.devices[index].key.installationID }
        await untilAnswered(version, of: index, &generator) { [client, server] timeout throws(PushClientError) in
            try await client.unregister(id, version: version, with: server, timeout: timeout)
        }
    }

    private func makeAttempt(_ attempt: Ledger.Attempt, _ device: Int, _ generator: inout SeededGenerator) -> UInt64 {
        let step = UInt64.random(in: 1...3, using: &generator)
        return ledger.withLock { $0.attempt(attempt, for: device, step: step) }
    }

    private func untilAnswered(
        _ version: UInt64, of device: Int, _ generator: inout SeededGenerator,
        _ ask: (Duration) async throws(PushClientError) -> PushNotificationRegistrationResponse.ErrorType?
    ) async {
        var isRepeated = false
        repeat {
            ledger.withLock { $0.figures.add(.asked) }
            do throws(PushClientError) {
                let timeout = Self.timeouts.randomElement(using: &generator) ?? .seconds(3)
                let error = try await ask(timeout)
                ledger.answers.ring()
                if error == .internalError, ledger.withLock(\.mayFailToStore) {
                    isRepeated = true
                    continue
                }
                // The first attempt succeeded and its answer was lost: no other client uses this version.
                if error == nil || (error == .versionMismatch && isRepeated) {
                    ledger.withLock { $0.acknowledged(version, of: device) }
                } else {
                    ledger.withLock { ledger in
                        ledger.breaks(
                            "\(ledger.devices[device].key.installationID) version \(version) refused: \(String(describing: error))")
                    }
                }
                return
            } catch {
                noteUnanswered(error)
                isRepeated = true
            }
        } while stopFlag.goesOn && Int.random(in: 0..<100, using: &generator) < 60
    }

    private func noteUnanswered(_ error: PushClientError) {
        ledger.withLock { ledger in
            ledger.figures.add(.unanswered)
            if error.code != .noAnswer { ledger.breaks("the client failed: \(error.message)") }
        }
    }

    // MARK: Notifying

    private func notify(_ generator: inout SeededGenerator) async {
        let count = ledger.withLock { $0.devices.count }
        guard count > 0 else { return }
        let isLarge = Int.random(in: 0..<Self.largeRequestPeriod, using: &generator) == 0
        let devices = Set(
            (0..<Int.random(in: isLarge ? 9...400 : 1...3, using: &generator)).map { _ in Int.random(in: 0..<count, using: &generator) })
        await notify(generator.bytes(32), devices.sorted(), &generator)
    }

    /// Repeats a recent message, possibly of another client, in a new request.
    private func notifyAgain(_ generator: inout SeededGenerator) async {
        let messages = ledger.withLock { $0.recentMessages }
        guard let message = messages.randomElement(using: &generator) else { return }
        ledger.withLock { $0.figures.add(.askedAgain) }
        await notify(message.id, message.devices, &generator)
    }

    private func notify(_ messageID: [UInt8], _ devices: [Int], _ generator: inout SeededGenerator) async {
        let kind: NotificationKind = Bool.random(using: &generator) ? .message : .contactRequest
        repeat {
            let targets = ledger.withLock { ledger in
                ledger.figures.add(.asked)
                return ledger.ask(messageID, for: devices)
            }
            guard !targets.isEmpty else { return }
            let entries = targets.map { target in
                PushNotification(
                    accessToken: target.accessToken, chatID: Shake256.hash64(messageID), publicKey: target.key.keyHash.bytes,
                    installationID: target.key.installationID, message: target.delivery.bytes, kind: kind, author: Shake256.hash64([1]))
            }
            do throws(PushClientError) {
                let timeout = Self.timeouts.randomElement(using: &generator) ?? .seconds(3)
                let reports = try await client.notify(entries, messageID: messageID, at: server, timeout: timeout)
                ledger.answers.ring()
                return take(reports, on: targets)
            } catch {
                noteUnanswered(error)
            }
        } while stopFlag.goesOn && Int.random(in: 0..<100, using: &generator) < 60
    }

    private func take(_ reports: [PushNotificationReport], on targets: [Ledger.Target]) {
        ledger.withLock { ledger in
            guard reports.map(\.installationID) == targets.map(\.key.installationID) else {
                ledger.breaks("the reports are not those of the request")
                return
            }
            for (report, target) in zip(reports, targets) { ledger.reported(report.error, on: target) }
        }
    }
}
