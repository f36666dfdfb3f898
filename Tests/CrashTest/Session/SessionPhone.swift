import Foundation
import Core
import SessionProtocol
import SessionStandIns
import Synchronization
import TestSupport
import WakuCrypto

/// A Session account with some devices. One action at a time, it subscribes, renews and unsubscribes them over HTTP, replays old
/// subscriptions, and receives messages, which its storage servers report.
final class SessionPhone: Sendable {
    private static let deviceLimit = 6
    /// The pause between two actions, in ms.
    private static let pauses = 0...90
    private static let namespaces: [[Int16]] = [[0], [0, 11], [-10, 0, 5], [11]]
    private static let services: [PushService] = [.apns, .apnsSandbox, .firebase, .huawei]

    let account: AccountID
    private let number: Int
    private let client: SessionClient
    private let stage: SessionStage
    private let ledger: SessionLedgerBox
    /// The numbers of its devices.
    private let own = Mutex<[Int]>([])
    private let stopFlag = StopFlag()

    init(_ number: Int, stage: SessionStage, ledger: SessionLedgerBox) throws {
        guard let client = SessionClient(sodium: stage.sodium, kind: number.isMultiple(of: 2) ? .person : .group) else {
            throw Failed("libsodium converts no key")
        }
        account = client.account
        (self.number, self.client, self.stage, self.ledger) = (number, client, stage, ledger)
    }

    /// Stops after the current action.
    func stop() { stopFlag.set() }

    /// Runs until ``stop()``.
    func live(_ seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        while stopFlag.goesOn {
            let devices = own.withLock(\.self).shuffled(using: &generator)
            switch Int.random(in: 0..<100, using: &generator) {
            case ..<12 where devices.count < Self.deviceLimit: await subscribe([addDevice(&generator)], &generator)
            case ..<32: await subscribe(Array(devices.prefix(1)), &generator)
            case ..<40: await subscribe(Array(devices.prefix(4)), &generator)
            case ..<50: await unsubscribe(Array(devices.prefix(1)), &generator)
            case ..<54: await replay(&generator)
            case ..<85: report(&generator)
            default: reportAgain(&generator)
            }
            try? await Task.sleep(for: .milliseconds(Int.random(in: Self.pauses, using: &generator)))
        }
    }

    // MARK: Subscribing

    private func addDevice(_ generator: inout SeededGenerator) -> Int {
        let service = Self.services.randomElement(using: &generator) ?? .firebase
        let token = hexString(generator.bytes(32))
        let device = ledger.withLock { [account] in $0.addDevice(of: account, service, token: token) }
        own.withLock { $0.append(device) }
        return device
    }

    private func subscribe(_ devices: [Int], _ generator: inout SeededGenerator) async {
        guard !devices.isEmpty else { return }
        var (parts, forms): ([SessionLedger.Part], [String]) = ([], [])
        for device in devices {
            let attempt = SessionLedger.Attempt(
                namespaces: Self.namespaces.randomElement(using: &generator) ?? [0],
                wantsData: Int.random(in: 0..<4, using: &generator) > 0)
            let part = ledger.withLock { $0.attempt(attempt, for: device) }
            parts.append(part)
            forms.append(form(attempt, part))
        }
        ledger.withLock { [number, parts] in $0.lastBodies[number] = parts }
        await untilAnswered(parts, .subscribe, forms, &generator)
    }

    private func form(_ attempt: SessionLedger.Attempt, _ part: SessionLedger.Part) -> String {
        let device = ledger.withLock { $0.devices[part.device] }
        let described = SessionClient.Device(
            service: device.service, token: device.token, encryptionKey: attempt.key, namespaces: attempt.namespaces,
            wantsData: attempt.wantsData)
        return SessionClient.json(of: client.subscription(of: described, at: part.signedAt))
    }

    private func unsubscribe(_ devices: [Int], _ generator: inout SeededGenerator) async {
        guard let device = devices.first else { return }
        let (part, known) = ledger.withLock { ($0.attempt(nil, for: device), $0.devices[device]) }
        let described = SessionClient.Device(service: known.service, token: known.token)
        let form = SessionClient.json(of: client.unsubscription(of: described, at: part.signedAt))
        await untilAnswered([part], .unsubscribe, [form], &generator)
    }

    /// Sends a body until it is answered, or the client gives up; then it is unknown whether the body is stored.
    private func untilAnswered(
        _ parts: [SessionLedger.Part], _ endpoint: SessionEndpoint, _ forms: [String], _ generator: inout SeededGenerator
    ) async {
        let isArray = forms.count > 1 || Bool.random(using: &generator)
        let body = isArray ? "[\(forms.joined(separator: ","))]" : forms.joined()
        var isRepeated = false
        repeat {
            if let answers = await ask(endpoint, body, &generator) {
                return ledger.withLock { [isRepeated] ledger in
                    if answers.count != parts.count { ledger.breaks("\(parts.count) requests have \(answers.count) answers") }
                    for (answer, part) in zip(answers, parts) { ledger.answered(answer, to: part, isRepeated: isRepeated) }
                }
            }
            isRepeated = true
            ledger.withLock { $0.figures.add(.sessionUnanswered) }
            try? await Task.sleep(for: .milliseconds(20))
        } while stopFlag.goesOn && Int.random(in: 0..<100, using: &generator) < 80
    }

    private func ask(_ endpoint: SessionEndpoint, _ body: String, _ generator: inout SeededGenerator) async -> [SessionAnswer]? {
        let encryption = ([nil] + OnionEncryption.allCases.map(Optional.some)).randomElement(using: &generator) ?? nil
        do {
            return try await stage.ask(endpoint, body, encryption)
        } catch {
            ledger.withLock { $0.breaks("an answer can't be read: \(error)") }
            return nil
        }
    }

    /// Replays an old subscription of a device that was unsubscribed or renewed, which must be refused.
    private func replay(_ generator: inout SeededGenerator) async {
        for index in own.withLock(\.self).shuffled(using: &generator) {
            let device = ledger.withLock { $0.devices[index] }
            let old = device.attempts.first { $0.key < device.floor && $0.value != nil }
            guard device.isCertain, device.subscription != nil || device.lastEnd == device.floor, let (signedAt, attempt) = old, let attempt
            else { continue }
            let part = SessionLedger.Part(device: index, signedAt: signedAt, wasSubscribed: nil)
            guard let answers = await ask(.subscribe, form(attempt, part), &generator) else { return }
            return ledger.withLock { ledger in
                ledger.figures.add(.sessionReplays)
                if answers != [.failed(RequestError.Code.error.rawValue)] {
                    ledger.breaks("\(ledger.name(index)): an old subscription is answered \(answers)")
                }
            }
        }
    }

    // MARK: Messages

    private func report(_ generator: inout SeededGenerator) {
        let namespace = ([0, 0, 0, 5, 11] as [Int16]).randomElement(using: &generator) ?? 0
        report(message(in: namespace, byteCount: Int.random(in: 1...3000, using: &generator)))
    }

    /// Reports the message again, from another server of the swarm, or from the same one after a reconnection.
    private func reportAgain(_ generator: inout SeededGenerator) {
        let messages = ledger.withLock { [account] ledger in ledger.messages.values.filter { $0.account == account } }
        if let message = messages.min(by: { $0.hash < $1.hash }), Bool.random(using: &generator) { return report(message) }
        if let message = messages.max(by: { $0.storedAt < $1.storedAt }) { report(message) }
    }

    func message(in namespace: Int16, byteCount: Int) -> NotifyMessage {
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        return NotifyMessage(
            account: account, hash: hexString(randomBytes(20)), namespace: namespace, storedAt: now, expiresAt: now + 86_400_000,
            data: randomBytes(byteCount))
    }

    private func report(_ message: NotifyMessage) {
        _ = ledger.withLock { $0.reporting(message) }
        stage.servers.report(message)
    }
}
