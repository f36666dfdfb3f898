import Delivery
import NodeAssembly
import Core
import SessionProtocol
import Storage
import TestSupport
import WakuCrypto

@testable import SessionServer

/// A test's own store, and a node's operations on it.
struct SessionStoreFixture {
    let folder: TemporaryFolder
    let identity = PrivateKey.generate()
    let store: any Store
    let subscriptions: Subscriptions
    let source: SessionDeliverySource
    let sodium: Sodium

    /// - Parameters:
    ///   - location: the location of the store.
    ///   - isShared: whether other nodes use the store.
    init(at location: StoreLocation = .dataFolder, isShared: Bool = false) throws {
        folder = try TemporaryFolder()
        sodium = try Sodium.load()
        store = try NodeAssembly.store(at: location, in: folder.path, of: identity)
        subscriptions = Subscriptions(store.sealer, isShared: isShared, sodium: sodium)
        source = SessionDeliverySource(store.sealer, apnsTopic: "com.session")
    }

    /// Carries out the requests of one body.
    @discardableResult
    func apply(_ requests: [SessionRequest], at now: Int64 = .now, limit: Int = 100) async throws -> AppliedRequests {
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: limit)
        return try await store.commit(subscriptions.apply(requests, rules, at: now) { _ in nil })
    }

    /// Counts the work of the writer for the requests of one body. Changes nothing.
    func steps(of requests: [SessionRequest], limit: Int = 100) throws -> (readCount: Int, rowCount: Int, changeCount: Int) {
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases), maximumDevicesPerAccount: limit)
        var (command, readCount, rowCount) = (subscriptions.apply(requests, rules, at: .now) { _ in nil }, 0, 0)
        while true {
            switch command {
            case .apply(let changes, _): return (readCount, rowCount, changes.count)
            case .read(let reads, let next):
                let found = try store.read(StoreCommand<[[Row]]>.read(reads) { .done($0) })
                readCount += reads.count
                rowCount += found.joined().count
                command = try next(found)
            }
        }
    }

    func subscribe(_ account: SessionAccount, _ device: SessionDevice, at signedAt: Int64 = .now) async throws {
        try await apply([.subscribe(account.subscription(device, at: signedAt))], at: max(signedAt, .now))
    }

    @discardableResult
    func notify(
        _ message: NotifyMessage, at now: Timestamp = .now(),
        admits: @escaping @Sendable (PreparedMessage.Notification) -> Bool = { _ in true }
    ) async throws -> NotifiedMessage {
        try await notify(try prepare(message, at: now), at: now, admits: admits)
    }

    func preparation(
        _ message: NotifyMessage, at now: Timestamp = .now(), unless isKnown: @escaping @Sendable (DeliveryID) -> Bool = { _ in false }
    ) -> StoreCommand<PreparedMessage> {
        subscriptions.prepare(message, expires: now + .seconds(600), by: source, sodium, at: now, unless: isKnown)
    }

    /// As the intake does, with an age limit of 10 minutes.
    func prepare(_ message: NotifyMessage, receivedAt: Timestamp, at now: Timestamp? = nil) throws -> PreparedMessage {
        let (arrival, limit) = (receivedAt.milliseconds, Int64(600_000))
        let expires = Timestamp(milliseconds: MessageRules.expiry(of: message, receivedAt: arrival, ageLimit: limit))
        let mayEndOtherwise = MessageRules.mayEndOtherwise(message, receivedAt: arrival, ageLimit: limit)
        return try store.read(
            subscriptions.prepare(
                message, expires: expires, mayEndOtherwise: mayEndOtherwise, by: source, sodium, at: now ?? receivedAt))
    }

    func prepare(_ message: NotifyMessage, at now: Timestamp = .now()) throws -> PreparedMessage {
        try store.read(preparation(message, at: now))
    }

    @discardableResult
    func notify(
        _ prepared: PreparedMessage, at now: Timestamp = .now(),
        admits: @escaping @Sendable (PreparedMessage.Notification) -> Bool = { _ in true }
    ) async throws -> NotifiedMessage {
        let again = preparation(prepared.message, at: now)
        return try await store.commit(subscriptions.notify(prepared, orElse: { again }, admits: admits))
    }

    func records(of account: SessionAccount) throws -> [SubscriptionRecord] {
        try store.read(Subscriptions.ofAccount(subscriptions.accountHash(account.id))).map { try subscriptions.open($0) }
    }

    func rows(of account: SessionAccount) throws -> [SubscriptionSummary] {
        try store.read(Subscriptions.ofAccount(subscriptions.accountHash(account.id)))
    }

    var waiting: [WaitingDelivery] {
        get throws { try store.read(DeliveryStorage.waitingDeliveries()) }
    }
}

func message(
    for account: SessionAccount, hash: String = hexString(randomBytes(20)), namespace: Int16 = 0, data: [UInt8]? = [1, 2, 3],
    storedAt: Int64 = .now * 1000, expiresAt: Int64 = (.now + .day) * 1000
) -> NotifyMessage {
    NotifyMessage(
        account: account.id, hash: hash, namespace: namespace, storedAt: storedAt, expiresAt: expiresAt, data: data)
}

extension SubscriptionForm {
    /// The same, as if another key had signed it.
    func delegated(_ delegation: Delegation) -> SubscriptionForm {
        let authority = SignedAuthority(
            account: authority.account, sessionKey: authority.sessionKey, delegation: delegation, signedAt: authority.signedAt,
            signature: authority.signature)
        return SubscriptionForm(
            authority: authority, namespaces: namespaces, wantsData: wantsData, device: device, encryptionKey: encryptionKey)
    }
}
