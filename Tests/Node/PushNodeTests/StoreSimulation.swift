import RateLimits
import NodeAPI
import NodeAssembly
import NodeMetrics
import Core
import Storage
import StoreSQLite
import StatusProtocol
import TestSupport
import Waku
import WakuCrypto

@testable import Delivery
@testable import StatusRules
@testable import StatusServer

/// A node's rules on a database with a failing disk, compared with a model of what it has acknowledged.
///
/// Messages come once or repeatedly, in any order, late, and several in a commit. gorush accepts notifications, and recording that may fail.
/// The node stops cleanly, is killed, or loses power. After each step the stored state must be the acknowledged state; after a crash it may
/// also include operations in progress.
struct StoreSimulation {
    struct Broken: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    /// A registration in force, or a tombstone.
    private struct Row: Hashable {
        var version: UInt64
        var isRegistered: Bool
    }

    private enum Message {
        case registration(RegistrationClaim, MessageHash)
        case request(PushNotificationRequest, MetadataEnvelope, MessageHash)
    }

    private static let accessToken = AccessToken("9f1b0c6e-52d3-4b7a-8a57-0d2c6d1e4f3a")

    private(set) var step = 0
    private(set) var failedCommitCount = 0
    private(set) var restartCount = 0

    private let seed: UInt64
    private var generator: SeededGenerator
    private let folder: TemporaryFolder
    private let faults: StoreFaults
    private let identity: PrivateKey
    private let registrationHandler: RegistrationHandler
    private let requestHandler: RequestHandler
    private var store: any Store
    private var now = Timestamp(rawValue: 1_800_000_000_000_000_000)

    private let owners: [PublicKey]
    private let keys: [RegistrationKey]
    private var nextVersion: [RegistrationKey: UInt64] = [:]
    private var messages: [Message] = []
    private var faultOfNow: (effect: StoreFaults.Effect, operations: StoreFaults.Operations, files: StoreFaults.Files, permille: Int)?

    // The node's memory.
    private var waiting: [DeliveryID: WaitingDelivery] = [:]
    /// Accepted by gorush, and not recorded yet.
    private var unnoted: [DeliveryID: WaitingDelivery] = [:]

    // The model: the acknowledged state.
    private var rows: [RegistrationKey: Row] = [:]
    private var outbox: [DeliveryID: RegistrationKey] = [:]
    private var accepted: Set<DeliveryID> = []
    private var answers: [[UInt8]: [UInt8]] = [:]
    private var deliveryKeys: [DeliveryID: RegistrationKey] = [:]

    // Failed operations since the last successful commit: a crash may still restore each of them, completely.
    private var triedRows: [RegistrationKey: Set<Row>] = [:]
    private var triedDeliveries: Set<DeliveryID> = []
    private var triedRemovals: Set<DeliveryID> = []
    private var triedAcceptances: Set<DeliveryID> = []

    private var postCounts: [DeliveryID: Int] = [:]
    /// How many more posts are permitted, since the node was killed after gorush's reply and before it was recorded.
    private var excusedPosts: [DeliveryID: Int] = [:]

    init(seed: UInt64) throws {
        self.seed = seed
        var generator = SeededGenerator(seed: seed)
        identity = try PrivateKey(bytes: generator.bytes(32))
        owners = try (0..<3).map { _ in try PrivateKey(bytes: generator.bytes(32)).publicKey }
        self.generator = generator
        folder = try TemporaryFolder()
        faults = StoreFaults(in: folder.path)
        faults.seed(seed)
        faults.trackSyncs()
        store = try NodeAssembly.store(in: folder.path, of: identity)
        let (registrations, limits) = (Registrations(store.sealer), StatusLimits(.none))
        registrationHandler = RegistrationHandler(
            rules: RegistrationRules(identity: identity, isIdempotent: seed.isMultiple(of: 2)), registrations: registrations,
            limits: limits,
            drain: Drain())
        requestHandler = RequestHandler(rules: RequestRules(maximumAge: .seconds(600)), registrations: registrations, limits: limits)
        keys = owners.flatMap { owner in
            ["phone", "tablet"].map { RegistrationKey(keyHash: KeyHash(of: owner), installationID: InstallationID($0)) }
        }
    }

    mutating func run(steps: Int) async throws {
        while step < steps {
            now = now + .milliseconds(Int.random(in: 0...50, using: &generator))
            switch Int.random(in: 0..<1000, using: &generator) {
            case ..<700: try await takeMessages()
            case ..<850: try await post()
            case ..<880: try await expire()
            case ..<980: changeFault()
            case ..<990: try await restart(isKilled: false, losesPower: false)
            case ..<995: try await restart(isKilled: true, losesPower: false)
            default: try await restart(isKilled: true, losesPower: true)
            }
            try check()
        }
        try await restart(isKilled: false, losesPower: false)
    }

    // MARK: Messages

    private mutating func takeMessages() async throws {
        let batch = try (0..<Int.random(in: 1...6, using: &generator)).map { _ in try nextMessage() }
        step += batch.count
        let time = now
        let results = await store.commitEach(
            batch.map { message -> StoreCommand<StatusHandler.Outcome> in
                switch message {
                case .registration(let claim, let hash):
                    return registrationHandler.change(claim, hash, at: time).map(StatusHandler.Outcome.registration)
                case .request(let request, let envelope, let hash):
                    let pending = PendingRequest(request, MessageOrigin(envelope), hash: hash, pubsubTopic: .statusDefault, times: nil)
                    return requestHandler.change(request, pending, expires: time + .seconds(600), at: time)
                        .map(StatusHandler.Outcome.request)
                }
            })
        // A message without a change writes nothing, and so does not overwrite earlier attempts.
        var hasWritten = false
        for (message, result) in zip(batch, results) {
            switch (message, result) {
            case (.registration(let claim, _), .success(let outcome)):
                let before = claim.key.flatMap { rows[$0] }
                try note(claim, outcome)
                if claim.key.flatMap({ rows[$0] }) != before { hasWritten = true }
            case (.request(_, let envelope, _), .success(let outcome)):
                let before = (outbox.count, answers.count)
                try note(envelope, outcome)
                if (outbox.count, answers.count) != before { hasWritten = true }
            case (_, .failure):
                failedCommitCount += 1
                noteTried(message)
            }
        }
        if hasWritten { forgetTried(but: zip(batch, results)) }
    }

    /// A new one, or one that was sent before: long ago, or just now.
    private mutating func nextMessage() throws -> Message {
        if !messages.isEmpty, Int.random(in: 0..<3, using: &generator) == 0 {
            let recent = messages.suffix(Bool.random(using: &generator) ? 5 : 500)
            if let old = recent.randomElement(using: &generator) { return old }
        }
        let message = try Int.random(in: 0..<10, using: &generator) < 4 ? registration() : request()
        messages.append(message)
        if messages.count > 1_000 { messages.removeFirst(500) }
        return message
    }

    private mutating func hash() -> MessageHash {
        WakuMessage(payload: generator.bytes(16), contentTopic: ContentTopic(rawValue: "/a"), timestamp: now).hash(on: .statusDefault)
    }

    private mutating func registration() -> Message {
        let index = Int.random(in: keys.indices, using: &generator)
        let key = keys[index]
        // Clients increase versions; an old device may be behind.
        let next = (nextVersion[key] ?? 0) + UInt64.random(in: 0...2, using: &generator)
        let version = max(1, next - min(next, UInt64.random(in: 0...8, using: &generator) == 0 ? 3 : 0))
        nextVersion[key] = max(version, nextVersion[key] ?? 0)
        var registration = PushNotificationRegistration()
        registration.tokenType = 1
        registration.deviceToken = DeviceToken("device")
        registration.installationID = key.installationID
        registration.accessToken = Self.accessToken
        registration.enabled = true
        registration.version = version
        registration.apnTopic = "app"
        let isEnd = Int.random(in: 0..<4, using: &generator) == 0
        let claim = RegistrationClaim(
            sender: owners[index / 2], requestID: [],
            intent: isEnd ? .unregister(key, version: version) : .register(key, registration, bytes: registration.encoded(), check: .passed)
        )
        return .registration(claim, hash())
    }

    private mutating func request() throws -> Message {
        let entries = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            let key = keys[Int.random(in: keys.indices, using: &generator)]
            let isForged = Int.random(in: 0..<20, using: &generator) == 0
            return PushNotification(
                accessToken: isForged ? AccessToken("x") : Self.accessToken, chatID: Array(repeating: 1, count: 64),
                publicKey: key.keyHash.bytes,
                installationID: key.installationID, kind: .message, author: Array(repeating: 2, count: 64))
        }
        // Ids repeat: other clients request notifications about the same message.
        let messageID = [UInt8](withUnsafeBytes(of: UInt32(step / 20 + Int.random(in: 0..<10, using: &generator)).bigEndian, Array.init))
        let request = PushNotificationRequest(requests: entries, messageID: messageID)
        let sender = owners[0]
        let bytes = MetadataEnvelope.encode(.request, payload: request.encoded() + generator.bytes(0), signedBy: identity).bytes
        let envelope = try MetadataEnvelope(parsing: bytes, wakuSigner: sender)
        for entry in entries {
            guard let keyHash = KeyHash(bytes: entry.publicKey) else { continue }
            let key = RegistrationKey(keyHash: keyHash, installationID: entry.installationID)
            deliveryKeys[DeliveryID(messageID: messageID, key: key)] = key
        }
        return .request(request, envelope, hash())
    }

    // MARK: The model

    private mutating func note(_ claim: RegistrationClaim, _ outcome: StatusHandler.Outcome) throws {
        guard case .registration(let outcome) = outcome, let key = claim.key else {
            throw Broken("a registration became something else")
        }
        let isSuccess = outcome.error == nil
        let before = rows[key]
        let row = Row(version: claim.version, isRegistered: claim.isRegistration)
        switch (before, isSuccess) {
        case (let before?, true) where claim.version < before.version:
            throw Broken("version \(claim.version) was taken after \(before.version)")
        case (let before?, true) where claim.version == before.version:
            // The same message again, or the same content where that is allowed.
            guard before == row else { throw Broken("another message of version \(claim.version) was taken for the one before") }
        case (_, true):
            rows[key] = row
            if !row.isRegistered { forgetOutbox(of: key) }
        case (nil, false): throw Broken("a first registration was refused")
        case (let before?, false):
            guard claim.version <= before.version else { throw Broken("version \(claim.version) was refused after \(before.version)") }
        }
    }

    private mutating func forgetOutbox(of key: RegistrationKey) {
        outbox = outbox.filter { $0.value != key }
    }

    private mutating func note(_ envelope: MetadataEnvelope, _ outcome: StatusHandler.Outcome) throws {
        guard case .request(let outcome) = outcome else { throw Broken("a request became something else") }
        let pending = outcome.pending
        for delivery in outcome.queued.map(\.waiting) {
            guard let key = deliveryKeys[delivery.delivery] else { throw Broken("a delivery that nobody asked for") }
            guard rows[key]?.isRegistered == true else { throw Broken("a delivery to a device that is not registered") }
            guard !accepted.contains(delivery.delivery), outbox[delivery.delivery] == nil else {
                throw Broken("a delivery was started twice")
            }
            outbox[delivery.delivery] = key
            waiting[delivery.delivery] = delivery
        }
        guard let codes = pending.finalCodes else { return }
        if let known = answers[envelope.id], known != codes { throw Broken("another answer to the same request") }
        answers[envelope.id] = codes
    }

    private mutating func noteTried(_ message: Message) {
        switch message {
        case .registration(let claim, _):
            guard let key = claim.key else { return }
            triedRows[key, default: []].insert(Row(version: claim.version, isRegistered: claim.isRegistration))
            if !claim.isRegistration { triedRemovals.formUnion(outbox.filter { $0.value == key }.keys) }
        case .request(let request, _, _):
            for entry in request.requests {
                guard let keyHash = KeyHash(bytes: entry.publicKey) else { continue }
                let key = RegistrationKey(keyHash: keyHash, installationID: entry.installationID)
                triedDeliveries.insert(DeliveryID(messageID: request.messageID, key: key))
            }
        }
    }

    /// A successful commit overwrites earlier failed attempts in the log. Failed operations of its own group may have been written after it.
    private mutating func forgetTried(but batch: Zip2Sequence<[Message], [Result<StatusHandler.Outcome, StoreError>]>) {
        (triedRows, triedDeliveries, triedRemovals, triedAcceptances) = ([:], [], [], [])
        for case (let message, .failure) in batch { noteTried(message) }
    }

    // MARK: Deliveries

    /// gorush accepts some waiting notifications, or earlier acceptances are recorded.
    private mutating func post() async throws {
        step += 1
        if unnoted.isEmpty {
            let batch = waiting.values.sorted { $0.id < $1.id }.prefix(Int.random(in: 1...5, using: &generator))
            for item in batch {
                // The node looks into the outbox before it posts.
                guard (try? store.read(DeliveryStorage.stored([item.id])))?.first != nil else { continue }
                guard !accepted.contains(item.delivery) else { throw Broken("posted after it was accepted") }
                postCounts[item.delivery, default: 0] += 1
                guard postCounts[item.delivery, default: 0] <= 1 + excusedPosts[item.delivery, default: 0] else {
                    throw Broken("posted twice")
                }
                unnoted[item.delivery] = item
            }
        }
        guard !unnoted.isEmpty else { return }
        let (items, time) = (Array(unnoted.values), now)
        do {
            try await store.commit(
                .change(
                    items.flatMap {
                        DeliveryStorage.accept(
                            PostedNotification(delivery: $0.delivery, device: $0.device, version: 1), postedAs: nil, at: time)
                    }))
        } catch {
            failedCommitCount += 1
            triedAcceptances.formUnion(unnoted.keys)
            triedRemovals.formUnion(unnoted.keys)
            return
        }
        (triedRows, triedDeliveries, triedRemovals, triedAcceptances) = ([:], [], [], [])
        for delivery in unnoted.keys {
            accepted.insert(delivery)
            outbox[delivery] = nil
            waiting[delivery] = nil
        }
        unnoted = [:]
    }

    private mutating func expire() async throws {
        step += 1
        guard let item = waiting.values.filter({ unnoted[$0.delivery] == nil }).min(by: { $0.id < $1.id }) else { return }
        do {
            try await store.commit(DeliveryStorage.drop([item.id], of: DeliverySources([]), at: .now()))
        } catch {
            failedCommitCount += 1
            triedRemovals.insert(item.delivery)
            return
        }
        // If an unregistration removed it already, nothing is written, and nothing in the log is overwritten.
        if outbox[item.delivery] != nil { (triedRows, triedDeliveries, triedRemovals, triedAcceptances) = ([:], [], [], []) }
        outbox[item.delivery] = nil
        waiting[item.delivery] = nil
        // It may be requested again, and is then posted only if it was never posted.
    }

    // MARK: Faults

    private mutating func changeFault() {
        faults.clear()
        faultOfNow =
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: (.code(13), .write, .log, 300)
            case 1: (.code(778), .write, .all, 300)
            case 2: (.code(1034), .sync, .all, 400)
            case 3: (.code(5), .lock, .all, 200)
            case 4: (.code(266), .read, .all, 300)
            default: nil
            }
        setFault()
    }

    private func setFault() {
        guard let fault = faultOfNow else { return }
        faults.add(fault.effect, to: fault.operations, of: fault.files, permille: fault.permille)
    }

    private mutating func restart(isKilled: Bool, losesPower: Bool) async throws {
        step += 1
        restartCount += 1
        if isKilled {
            faults.kill()
        } else {
            faults.clear()
        }
        try? store.close()
        faults.clear()
        if losesPower { faults.cutPower() }
        faults.revive()
        for delivery in unnoted.keys { excusedPosts[delivery, default: 0] += 1 }
        (waiting, unnoted) = ([:], [:])
        store = try NodeAssembly.store(in: folder.path, of: identity)
        try adopt(isCrash: isKilled)
        setFault()
    }

    /// Adopts the stored state: the acknowledged state, possibly with operations in progress at a crash.
    private mutating func adopt(isCrash: Bool) throws {
        for key in keys {
            let found = try row(of: key)
            guard found != rows[key] else { continue }
            guard isCrash, let found, triedRows[key]?.contains(found) == true, found.version >= rows[key]?.version ?? 0 else {
                throw Broken("after a restart: \(String(describing: found)) instead of \(String(describing: rows[key]))")
            }
            rows[key] = found
            if !found.isRegistered { triedRemovals.formUnion(outbox.filter { $0.value == key }.keys) }
        }
        let stored = try store.read(DeliveryStorage.waitingDeliveries())
        let found = Set(stored.map(\.delivery))
        for delivery in Set(outbox.keys).subtracting(found) {
            guard isCrash, triedRemovals.contains(delivery) else { throw Broken("an accepted notification is lost") }
        }
        for delivery in found.subtracting(outbox.keys) {
            guard isCrash, triedDeliveries.contains(delivery) else { throw Broken("a notification came from nowhere") }
        }
        for delivery in triedAcceptances where try isAccepted(delivery) { accepted.insert(delivery) }
        outbox = [:]
        for item in stored {
            outbox[item.delivery] = deliveryKeys[item.delivery]
            waiting[item.delivery] = item
        }
        (triedRows, triedDeliveries, triedRemovals, triedAcceptances) = ([:], [], [], [])
        for delivery in accepted {
            guard try isAccepted(delivery) else { throw Broken("an acceptance was forgotten") }
        }
        for (message, codes) in answers {
            guard try store.read(AnswerStorage.answer(to: message)) == codes else { throw Broken("an answer was forgotten") }
        }
    }

    private func isAccepted(_ delivery: DeliveryID) throws -> Bool {
        try store.read(DeliveryStorage.states(of: [delivery]))[0] == .accepted
    }

    private func row(of key: RegistrationKey) throws -> Row? {
        try store.read(Registrations(store.sealer).state(of: key)).map { Row(version: $0.version, isRegistered: $0.registration != nil) }
    }

    // MARK: Check

    private func check() throws {
        faults.clear()
        defer { setFault() }
        for key in keys where try row(of: key) != rows[key] {
            throw Broken("\(String(describing: try row(of: key))) instead of \(String(describing: rows[key]))")
        }
        let found = Set(try store.read(DeliveryStorage.waitingDeliveries()).map(\.delivery))
        guard found == Set(outbox.keys) else { throw Broken("the outbox is not what was acknowledged") }
    }
}

extension RegistrationClaim {
    fileprivate var isRegistration: Bool {
        if case .register = intent { true } else { false }
    }
}
