import Logging
package import NodeMetrics
import Core
import Storage
import Synchronization

/// Handles token failures that gorush reports in its replies or by its feedback hook, both in the same way.
///
///     reply ──────────────────────────────────▶ TokenFailure ──▶ judge ──▶ settle
///     hook ──▶ wait for the post's end ──▶ look up ──▶ TokenFailure ──▶ judge ──▶ settle
///
/// A hook call can arrive before the reply to its post: its failure is kept until that post has ended. If another node posted, the acceptance may not be
/// stored yet: a failure that names no stored notification is looked up once more, after 2 s. gorush reports each failure once, without an
/// acknowledgement; a failure lost in a crash occurs again with the next notification for that device.
package final class Feedback: Sendable {
    /// The maximum number of waiting failures from the hook; more are dropped.
    package static let capacity = 10_000
    /// The maximum number of failures handled together.
    private static let batchCount = 500
    /// The pause before a failure that names no stored notification is looked up once more.
    private static let secondLookPause = Duration.seconds(2)
    private static let alarmPause = Duration.seconds(60)
    private static var webPushGuard: FailureGuard.Configuration {
        var configuration = FailureGuard.Configuration()
        configuration.scopeLimit = 1000
        return configuration
    }

    private struct State {
        var failureGuard = FailureGuard()
        /// Separate, because strangers choose the origins of push services.
        var webPushGuard = FailureGuard(configuration: Feedback.webPushGuard)
        /// The deliveries of each post in flight.
        var posting: [PostID: [DeliveryID]] = [:]
        /// Failures that the hook reported for posts in flight.
        var early: [PostID: [GorushFailure]] = [:]
        var earlyCount = 0
        var waiting: [GorushFailure] = []
        /// The number of failures that are looked up once more.
        var unknownCount = 0
        /// The number of failures that wait.
        var count: Int { waiting.count + earlyCount + unknownCount }
        var alarms: [String: (last: ContinuousClock.Instant, suppressed: Int)] = [:]
    }

    private let store: any Store
    private let ids: NotificationIDCipher?
    private let sources: DeliverySources
    private let counters: Counters
    package let alarms: Alarms
    private let logger: Logger
    private let errors: RepeatedErrors
    private let now: @Sendable () -> Timestamp
    private let state = Mutex(State())
    private let wakeUp = WakeUpSignal()

    init(
        store: any Store, sources: DeliverySources, ids: NotificationIDCipher?, counters: Counters, alarms: Alarms, logger: Logger,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.store = store
        self.sources = sources
        self.ids = ids
        self.counters = counters
        self.alarms = alarms
        self.logger = logger
        errors = RepeatedErrors(logger)
        self.now = now
    }

    // MARK: The hook

    package var waitingCount: Int { state.withLock(\.count) }

    /// Queues a failure from the hook. False when too many wait.
    package func take(_ failure: GorushFailure) -> Bool {
        let prefix = deliveryPrefix(of: failure)
        let hasRoom = state.withLock { state in
            guard state.count < Self.capacity else { return false }
            let post = prefix.flatMap { prefix in state.posting.first { $0.value.contains { $0.bytes.starts(with: prefix) } }?.key }
            if let post {
                state.early[post, default: []].append(failure)
                state.earlyCount += 1
            } else {
                state.waiting.append(failure)
            }
            return true
        }
        if hasRoom { wakeUp.signal() }
        return hasRoom
    }

    /// Records that these deliveries are about to be posted.
    func began(_ post: PostID, _ deliveries: [DeliveryID]) {
        state.withLock { $0.posting[post] = deliveries }
    }

    /// Records that a post has ended and its acceptance is durable.
    func ended(_ post: PostID) {
        let isNews = state.withLock { state in
            state.posting[post] = nil
            guard let early = state.early.removeValue(forKey: post) else { return false }
            state.earlyCount -= early.count
            state.waiting += early
            return true
        }
        if isNews { wakeUp.signal() }
    }

    /// Handles failures from the hook, until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await _ in wakeUp {
                while true {
                    let batch = state.withLock { state in
                        let batch = Array(state.waiting.prefix(Self.batchCount))
                        state.waiting.removeFirst(batch.count)
                        return batch
                    }
                    guard !batch.isEmpty else { break }
                    let unknown = await handle(batch, isLast: state.withLock { $0.unknownCount > Self.capacity / 2 })
                    guard !unknown.isEmpty else { continue }
                    state.withLock { $0.unknownCount += unknown.count }
                    group.addTask { await self.handleLater(unknown) }
                }
            }
        }
    }

    /// Handles failures whose notifications another node may be about to store.
    private func handleLater(_ failures: [GorushFailure]) async {
        defer { state.withLock { $0.unknownCount -= failures.count } }
        guard (try? await Task.sleep(for: Self.secondLookPause)) != nil else { return }
        await handle(failures, isLast: true)
    }

    /// - Parameter isLast: whether failures that name no stored notification are given up.
    /// - Returns: the others among those.
    @discardableResult
    func handle(_ failures: [GorushFailure], isLast: Bool) async -> [GorushFailure] {
        let time = now()
        do throws(StoreError) {
            // With retries, gorush reports each attempt: the guard must count a token once, or it would ignore the failures of other tokens too.
            let (found, repeatedCount, unknown) = try await store.onReader { store throws(StoreError) in
                let posted = try store.read(StoreCommand.each(failures.map(self.posted)))
                var found: [TokenFailure] = []
                var unknown: [GorushFailure] = []
                for (failure, posted) in zip(failures, posted) {
                    if !isLast, posted?.isEmpty == true {
                        unknown.append(failure)
                    } else if let match = try self.match(failure, posted, store) {
                        found.append(match)
                    }
                }
                let haveFailed = try store.read(DeliveryStorage.haveFailures(found.map(\.posted.delivery)))
                var known: Set<DeliveryID> = []
                let news = zip(found, haveFailed).filter { known.insert($0.posted.delivery).inserted && !$1 }.map(\.0)
                return (news, found.count - news.count, unknown)
            }
            counters.add(.tokenFailureRepeated, repeatedCount)
            await settle(judge(found, of: nil, at: time), at: time)
            return unknown
        } catch {
            lose(failures.count, error)
            return []
        }
    }

    /// The delivery ids' prefix of a failure; nil when this server did not create the id. Posts from before a change of the profile count too.
    private func deliveryPrefix(of failure: GorushFailure) -> [UInt8]? {
        failure.notificationID.flatMap { DeliveryID.prefix(of: $0, ids) }
    }

    /// The notifications posted under the id of a failure; nil when this server did not create the id.
    private func posted(_ failure: GorushFailure) -> StoreCommand<[PostedNotification]?> {
        guard let prefix = deliveryPrefix(of: failure) else { return .done(nil) }
        return DeliveryStorage.posted(under: prefix).map { $0 }
    }

    /// Finds the token that failed; nil when it is ambiguous, unknown or no longer registered.
    private func match(
        _ failure: GorushFailure, _ posted: [PostedNotification]?, _ store: any Store
    ) throws(StoreError) -> TokenFailure? {
        guard let posted else {
            counters.add(.tokenFailureUnmatched)
            return nil
        }
        let rows = try store.read(sources.rows(of: posted.map(\.device)))
        // A row that can't be decrypted is not a candidate.
        var candidates = posted.compactMap { posted in
            rows[posted.device].flatMap { try? sources[posted.device.protocol]?.address(of: $0) }.map { (posted, $0) }
        }
        // A single one is the one however its token is masked, unless another token is visible: that of an earlier post of the same notification.
        candidates = candidates.filter { candidate in
            guard case .gorush(let device) = candidate.1.target else { return false }
            return posted.count > 1 ? failure.masks(device.token) : !failure.excludes(device.token)
        }
        guard candidates.count == 1, let (posted, address) = candidates.first, case .gorush(let device) = address.target else {
            counters.add(posted.count == 1 ? .tokenFailureStale : .tokenFailureUnmatched)
            return nil
        }
        let reason = FailureReason(platform: device.platform, error: failure.error)
        return TokenFailure(posted: posted, credentialScope: address.credentialScope, reason: reason)
    }

    // MARK: Effects

    /// Counts failures, raises alarms, and returns the failures that count against their tokens.
    ///
    /// - Parameters:
    ///   - failures: at most one for each delivery.
    ///   - deliveries: the accepted deliveries of their batch; nil when the hook reported the failures.
    func judge(_ failures: [TokenFailure], of deliveries: [QueuedDelivery]?, at now: Timestamp) async -> [TokenFailure] {
        let owners = await findOwners(of: failures)
        let posted = Dictionary(grouping: deliveries ?? [], by: \.credentialScope).mapValues { $0.map(\.waiting.device) }
        let found = failures.map { failure in
            let device = failure.posted.device
            return FailureGuard.Failure(
                credentialScope: failure.credentialScope, reason: failure.reason, device: device,
                owner: owners[device]?.keyHash.hashValue ?? device.hashValue)
        }
        let counts = state.withLock { state in
            // A batch is for one endpoint, and so for one kind.
            guard (posted.keys.first ?? failures.first?.credentialScope)?.platform == .webPush else {
                state.failureGuard.posted(posted, at: now)
                return state.failureGuard.judge(found, of: posted, at: now)
            }
            state.webPushGuard.posted(posted, at: now)
            return state.webPushGuard.judge(found, of: posted, at: now)
        }
        return zip(failures, counts).compactMap { failure, counts in
            let metadata: Logger.Metadata = ["platform": "\(failure.credentialScope.platform)", "reason": "\(failure.reason.rawValue)"]
            switch failure.reason.verdict {
            case .other:
                counters.add(.tokenFailedOtherwise)
                return nil
            case .message:
                counters.add(.messageFailed)
                return nil
            case .operatorsMistake:
                counters.add(.tokenOperatorsMistake)
                alarm(
                    .pushServiceCredentials, "gorush's certificate, key or account is not accepted by the push service", metadata)
                return nil
            case .dead: counters.add(.tokenDead)
            case .doubtful: counters.add(.tokenDoubtful)
            }
            guard !counts else { return failure }
            counters.add(.tokenHeldOff)
            alarm(
                .tokensHeldOff,
                "too many tokens fail alike, so none of them is removed: are they of gorush's certificate and environment, or Firebase project?",
                metadata)
            return nil
        }
    }

    /// Empty when they can't be read: then each device counts as an owner.
    private func findOwners(of failures: [TokenFailure]) async -> [DeviceID: DeviceOwner] {
        guard !failures.isEmpty else { return [:] }
        return (try? await store.fetch(sources.owners(of: failures.map(\.posted.device)))) ?? [:]
    }

    /// Applies failures to their tokens, in one group of commits. Returns when the result is durable, or has failed.
    ///
    /// - Parameters:
    ///   - failures: the failures that count against their tokens.
    ///   - deliveries: accepted deliveries, each of which may end a doubt.
    /// - Returns: the failed deliveries whose devices were unregistered.
    @discardableResult
    func settle(_ failures: [TokenFailure], besides deliveries: [QueuedDelivery] = [], at now: Timestamp) async -> Set<DeliveryID> {
        guard !failures.isEmpty || !deliveries.isEmpty else { return [] }
        // One command each: a command sees the changes of earlier commands, but not those of its own other parts.
        let acceptances = deliveries.map {
            DeliveryStorage.noteAcceptance(by: $0.waiting.device, version: $0.address.version, at: now).map { TokenFailure.Effect?.none }
        }
        let results = await store.commitEach(acceptances + failures.map { $0.takeEffect(sources, at: now).map(TokenFailure.Effect?.some) })
        var ended: Set<DeliveryID> = []
        var lostCount = 0
        var error: StoreError?
        for (index, result) in results.enumerated() {
            switch result {
            case .success(let effect?):
                count(effect)
                if effect == .removed || effect == .disabled { ended.insert(failures[index - acceptances.count].posted.delivery) }
            case .success(nil): break
            case .failure(let failure):
                error = failure
                // A failed acceptance loses only the end of a doubt, which the next acceptance makes up for.
                if index >= acceptances.count { lostCount += 1 }
            }
        }
        if let error { lose(lostCount, error) }
        return ended
    }

    private func count(_ effect: TokenFailure.Effect) {
        switch effect {
        case .repeated: counters.add(.tokenFailureRepeated)
        case .stale: counters.add(.tokenFailureStale)
        case .doubted: break
        case .removed: counters.add(.tokenRemoved)
        case .disabled: counters.add(.tokenDisabled)
        }
    }

    private func lose(_ count: Int, _ error: StoreError) {
        counters.add(.tokenFailureLost, count)
        errors.log("failed to store token feedback", reason: error.message, count: count)
    }

    /// Raises an alarm about a fault that the operator must fix. Each message is logged at most once a minute for each platform, with the number of
    /// suppressed repetitions.
    func alarm(_ kind: AlarmKind, _ message: String, _ metadata: Logger.Metadata) {
        alarms.raise(kind, metadata.sorted { $0.key < $1.key }.map { "\($0.value)" }.joined(separator: ": "))
        let time = ContinuousClock.now
        let key = "\(message) \(metadata["platform"] ?? "")"
        let suppressed = state.withLock { state -> Int? in
            if let (last, suppressed) = state.alarms[key], time - last < Self.alarmPause {
                state.alarms[key] = (last, suppressed + 1)
                return nil
            }
            defer { state.alarms[key] = (time, 0) }
            return state.alarms[key]?.suppressed ?? 0
        }
        guard let suppressed else { return }
        logger.error("\(message)", metadata: metadata.merging(["suppressed": .stringConvertible(suppressed)]) { old, _ in old })
    }
}

/// A post to one of the endpoints.
struct PostID: Hashable {
    let endpoint: EndpointID
    let batch: UInt64
}
