import Foundation
import Core
import StatusProtocol
import StatusRules
import StatusV01Server
import Storage
import Synchronization
import TestSupport
import Waku
import WakuCrypto

/// A version 0.1 account. One action at a time, it registers whole records, ends them, and requests notifications for its own devices. It records
/// the daemon's promises.
final class V01Phone: Sendable {
    private static let timeouts: [Duration] = [.milliseconds(400), .seconds(1), .seconds(3)]
    private static let pauses = 0...60

    struct Notice {
        /// The devices to notify.
        let tokens: Set<String>
        /// The version of the record with these devices.
        let version: UInt64
        /// Answered with INTERNAL_ERROR: the notification is in the outbox.
        var isKept = false
        var isDelivered = false
    }

    struct Account {
        /// By version; nil for an unregistration.
        var attempts: [UInt64: V01.Preferences?] = [:]
        /// The highest version known to be on disk. 0 if there is none.
        var floor: UInt64 = 0
        var notices: [[UInt8]: Notice] = [:]
        var broken: [String] = []

        var highestVersion: UInt64 { attempts.keys.max() ?? 0 }
        /// The certainly registered record: no later attempt is open.
        var record: V01.Preferences? { floor == highestVersion ? attempts[floor] ?? nil : nil }
    }

    private let number: Int
    private let identity = PrivateKey.generate()
    private let server: PublicKey
    private let exchange: V01Exchange
    private let posts: V01Posts
    /// Whether INTERNAL_ERROR promises nothing.
    private let mayFailToStore: Bool
    private let stopFlag = StopFlag()
    private let state = Mutex(Account())

    init(_ number: Int, server: PublicKey, relay: any Relay, posts: V01Posts, mayFailToStore: Bool) {
        self.number = number
        self.server = server
        self.posts = posts
        self.mayFailToStore = mayFailToStore
        exchange = V01Exchange(identity, server: server, relay: relay)
    }

    var broken: [String] { state.withLock(\.broken) }

    /// Stops after the current action.
    func stop() { stopFlag.set() }

    /// Runs until ``stop()``, receiving answers meanwhile.
    func live(_ seed: UInt64) async {
        let listening = Task { await exchange.run() }
        defer { listening.cancel() }
        var generator = SeededGenerator(seed: seed)
        while stopFlag.goesOn {
            switch Int.random(in: 0..<100, using: &generator) {
            case ..<40: await register(&generator)
            case ..<48: await unregister(&generator)
            default: await notify(&generator)
            }
            try? await Task.sleep(for: .milliseconds(Int.random(in: Self.pauses, using: &generator)))
        }
    }

    // MARK: Registering

    private func register(_ generator: inout SeededGenerator) async {
        let old = state.withLock { $0.record?.accessToken }
        let keepsToken = Int.random(in: 0..<3, using: &generator) > 0
        let devices = (0..<Int.random(in: 1...4, using: &generator)).map { index in
            V01Account.device(
                "v01-\(number)-\(index)", token: "v01-token-" + hexString(generator.bytes(8)),
                tokenType: UInt32.random(in: 1...2, using: &generator), isEnabled: Int.random(in: 0..<4, using: &generator) > 0)
        }
        let token = keepsToken ? old : nil
        await send(
            V01.Preferences(devices: devices, version: nextVersion(&generator), accessToken: token ?? V01Account.newToken()), &generator)
    }

    private func unregister(_ generator: inout SeededGenerator) async {
        await send(V01.Preferences(version: nextVersion(&generator), unregister: true, accessToken: AccessToken("")), &generator)
    }

    private func nextVersion(_ generator: inout SeededGenerator) -> UInt64 {
        let step = UInt64.random(in: 1...3, using: &generator)
        return state.withLock { $0.highestVersion + step }
    }

    /// Sends a Register until it is answered, or the client gives up; then it is unknown whether it is stored.
    private func send(_ preferences: V01.Preferences, _ generator: inout SeededGenerator) async {
        let register = V01.Register(preferences, for: server, signedBy: identity)
        let version = preferences.version
        state.withLock { $0.attempts[version] = .some(preferences.unregister ? nil : preferences) }
        repeat {
            let limit = Self.timeouts.randomElement(using: &generator) ?? .seconds(3)
            guard let response = await exchange.register(register, within: limit) else { continue }
            if mayFailToStore, response.error == .internalError { continue }
            state.withLock { account in
                // A repetition of the stored Register always succeeds.
                if let error = response.error {
                    account.broken.append("account \(number): version \(version) refused: \(error)")
                } else {
                    account.floor = max(account.floor, version)
                }
            }
            return
        } while stopFlag.goesOn && Int.random(in: 0..<100, using: &generator) < 60
    }

    // MARK: Notifying

    private func notify(_ generator: inout SeededGenerator) async {
        guard let record = state.withLock({ $0.record }) else { return }
        let message = generator.bytes(32)
        let tokens = Set(record.devices.filter(\.isEnabled).map { $0.token.revealed })
        state.withLock { $0.notices[message] = Notice(tokens: tokens, version: record.version) }
        let entry = V01.PushNotification(accessToken: record.accessToken, chatID: V01.chatHash("a chat"))
        repeat {
            let limit = Self.timeouts.randomElement(using: &generator) ?? .seconds(3)
            guard let acknowledgement = await exchange.request(entry, message: message, within: limit) else { continue }
            return take(acknowledgement.error, of: message)
        } while stopFlag.goesOn && Int.random(in: 0..<100, using: &generator) < 60
    }

    private func take(_ error: V01.Acknowledgement.ErrorType?, of message: [UInt8]) {
        let posted = posts.tokens(of: message)
        state.withLock { account in
            guard let notice = account.notices[message] else { return }
            switch error {
            case nil:
                account.notices[message]?.isDelivered = true
                if !notice.tokens.isSubset(of: posted) {
                    account.broken.append("account \(number): acknowledged, and gorush was not posted all of it")
                }
            case .internalError: if !mayFailToStore { account.notices[message]?.isKept = true }
            case .badToken, .unknown:
                account.broken.append("account \(number): the token of a registered record is refused: \(String(describing: error))")
            }
        }
    }

    // MARK: Checks

    /// Checks the database of a killed or running daemon: everything promised before must be present.
    func check(_ store: any Store, _ place: String) throws {
        let before = state.withLock { $0 }
        let keyHash = V01.KeyHash(of: identity.publicKey)
        let records = Records(store.sealer)
        // In one snapshot, since a running daemon continues to write.
        let (head, stored) = try store.read(
            Records.head(of: keyHash).then { head in records.preferences(of: keyHash).map { (head, $0) } })
        state.withLock { account in
            guard let head else {
                if before.floor > 0 {
                    account.broken.append("account \(number) \(place): nothing is stored, version \(before.floor) was promised")
                }
                return
            }
            let version = head.head.version
            if version < before.floor {
                account.broken.append("account \(number) \(place): version \(version) is stored, \(before.floor) was promised")
            }
            let isKnown = account.attempts[version].map { $0 == stored } ?? false
            if !isKnown { account.broken.append("account \(number) \(place): what is stored as version \(version) was never sent") }
            account.floor = max(account.floor, version)
        }
    }

    /// Called after the outbox became empty: all stored notifications were posted, unless the record changed since.
    func checkAllDelivered() {
        state.withLock { account in
            for (message, notice) in account.notices where notice.isKept && !notice.isDelivered {
                guard account.highestVersion == notice.version else { continue }
                if !notice.tokens.isSubset(of: posts.tokens(of: message)) {
                    account.broken.append("account \(number): a notification that was kept was never posted")
                }
            }
        }
    }
}

/// Version 0.1 posts to gorush: tokens by message.
final class V01Posts: Sendable {
    private let posted = Mutex<[[UInt8]: Set<String>]>([:])

    func note(_ message: [UInt8], _ tokens: [String]) {
        posted.withLock { $0[message, default: []].formUnion(tokens) }
    }

    func tokens(of message: [UInt8]) -> Set<String> {
        posted.withLock { $0[message] ?? [] }
    }
}
