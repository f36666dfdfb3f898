public import Core
import Synchronization

/// Several relays used as one: all receive messages; each message is published by the first relay that accepts it.
///
/// Each message is delivered once by each relay, possibly at the same time. Receivers recognize duplicates by the message hash.
public final class RelaySet: Relay {
    /// How long a relay or its store may take to respond while there are others. Clients wait 3 s for an answer.
    private static let timeout = Duration.milliseconds(2500)

    /// In order of preference for publishing. A relay's index here is its place.
    public let relays: [any Relay]
    private let ranking: Mutex<RelayRanking>

    /// - Parameter relays: In order of preference for publishing.
    public init(_ relays: [any Relay]) {
        self.relays = relays
        ranking = Mutex(RelayRanking(count: relays.count))
    }

    /// Receives from all relays concurrently, so that `deliver` may run several times at once.
    public func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        await withDiscardingTaskGroup { group in
            for relay in relays {
                group.addTask { await relay.run(deliver: deliver) }
            }
        }
    }

    // MARK: Publishing

    /// Publishes by the first relay that accepts the message, in the order of ``RelayRanking``.
    @discardableResult
    public func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        try await publish(message, on: pubsubTopic, avoiding: []).publication
    }

    /// Publishes by the first relay that accepts the message, in the order of ``RelayRanking``. When one refuses it or does not respond within
    /// 2.5 s, the next is tried. A single relay has no timeout.
    ///
    /// - Throws: ``RelayError`` of a relay, `unavailable` rather than `refused`, when none accepted it.
    public func publish(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, avoiding avoided: Set<Int>
    ) async throws(RelayError) -> PlacedPublication {
        let isAttached = relays.map { $0.state == .attached }
        let groups = ranking.withLock { $0.groups(isAttached: isAttached, avoiding: avoided, at: Instant.now) }
        var failures: [RelayError] = []
        for group in groups {
            let outcomes = await publish(message, on: pubsubTopic, by: group)
            var taken: [Int: Publication] = [:]
            for (place, outcome) in outcomes {
                switch outcome {
                case .success(let publication): taken[place] = publication
                case .failure(let error): failures.append(error)
                }
            }
            guard !taken.isEmpty else { continue }
            let publication = taken.values.contains(.confirmed) ? .confirmed : taken.values.first ?? .unconfirmed(canBeLookedUp: true)
            return PlacedPublication(publication, places: Set(taken.keys), canBeChecked: relays.count > 1)
        }
        // A relay that may accept it later makes another attempt worthwhile.
        throw failures.first { $0.code == .unavailable } ?? failures.first
            ?? RelayError(code: .unavailable, message: "there is no node to publish by: configure one")
    }

    private func publish(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, by places: [Int]
    ) async -> [Int: Result<Publication, RelayError>] {
        await each(of: places) { relay throws(RelayError) in
            try await relay.publish(message, on: pubsubTopic)
        } onTimeout: { place in
            // Whether the message was published is unknown.
            self.note([RelayVerdict(place: place, isConfirmed: false)])
        }
    }

    /// Runs an operation on these relays concurrently, with a timeout when there are several relays.
    private func each<Value: Sendable>(
        of places: [Int], _ body: @escaping @Sendable (any Relay) async throws(RelayError) -> Value,
        onTimeout: @escaping @Sendable (Int) -> Void = { _ in }
    ) async -> [Int: Result<Value, RelayError>] {
        guard relays.count > 1 else {
            var outcomes: [Int: Result<Value, RelayError>] = [:]
            for place in places { outcomes[place] = await Self.result(of: { () throws(RelayError) in try await body(self.relays[place]) }) }
            return outcomes
        }
        return await withTaskGroup(of: (Int, Result<Value, RelayError>).self) { group in
            for place in places {
                group.addTask { [relay = relays[place]] in
                    let outcome = await withTimeout(Self.timeout) { await Self.result { () throws(RelayError) in try await body(relay) } }
                    if outcome == nil, !Task.isCancelled { onTimeout(place) }
                    return (place, outcome ?? .failure(RelayError(code: .unavailable, message: "\(relay.name) takes too long")))
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    private static func result<Value: Sendable>(
        of body: () async throws(RelayError) -> Value
    ) async -> Result<Value, RelayError> {
        do throws(RelayError) {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    // MARK: Stores

    /// The messages that any of the stores has.
    ///
    /// - Throws: ``RelayError``, when no store answered.
    public func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        try await findings(hashes).found.values.reduce(into: []) { $0.formUnion($1) }
    }

    /// Asks the stores of the attached relays, or of all if none is attached, concurrently.
    public func findings(_ hashes: [MessageHash]) async throws(RelayError) -> StoreFindings {
        let attached = relays.indices.filter { relays[$0].state == .attached }
        let outcomes = await each(of: attached.isEmpty ? Array(relays.indices) : attached) { relay throws(RelayError) in
            try await relay.lookUp(hashes)
        }
        var findings = StoreFindings(found: [:], relayCount: relays.count)
        var failures: [RelayError] = []
        for (place, outcome) in outcomes {
            switch outcome {
            case .success(let found): findings.found[place] = found
            case .failure(let error):
                failures.append(error)
                if error.code == .unavailable { findings.unavailable.insert(place) }
            }
        }
        // A store that may answer later makes another attempt worthwhile.
        if findings.found.isEmpty {
            throw failures.first { $0.code == .unavailable } ?? failures.first
                ?? RelayError(code: .refused, message: "there is no node to look messages up at")
        }
        return findings
    }

    /// Records verdicts, by which relays lose or regain their rank.
    public func note(_ verdicts: [RelayVerdict]) {
        guard !verdicts.isEmpty else { return }
        let now = Instant.now
        ranking.withLock { ranking in
            for verdict in verdicts { ranking.note(verdict, at: now) }
        }
    }

    /// The names of all relays, separated by commas.
    public var name: String { relays.map(\.name).joined(separator: ", ") }

    /// The demoted relays; empty for a single relay.
    public var demotedRelays: [String] {
        relays.count > 1 ? ranking.withLock(\.demoted).map { relays[$0].name } : []
    }

    /// The detached relays, if there are several, and the detached peers and topics of the attached ones.
    public var detachedRelays: [String] {
        relays.flatMap { $0.state == .attached ? $0.detachedRelays : relays.count > 1 ? [$0.name] : [] }
    }

    /// The smallest known difference from a node's clock, since a single node's clock may be wrong.
    public var clockAhead: Duration? {
        relays.compactMap(\.clockAhead).min { ($0 < .zero ? .zero - $0 : $0) < ($1 < .zero ? .zero - $1 : $1) }
    }

    // MARK: All relays together

    /// Attached if any relay is; otherwise detached, with the reasons of all.
    public var state: RelayState {
        var reasons: [String] = []
        for relay in relays {
            switch relay.state {
            case .attached: return .attached
            case .detached(let reason): reasons.append(reason)
            }
        }
        return .detached(reasons.isEmpty ? "no relay is configured" : reasons.joined(separator: "; "))
    }

    /// For each topic the latest time of any relay: a message that one relay delivered was not missed. A relay that is detached or waits for
    /// its store does not hold the others back.
    public var seenUntil: [PubsubTopic: Timestamp] {
        relays.reduce(into: [:]) { furthest, relay in furthest.merge(relay.seenUntil, uniquingKeysWith: max) }
    }

    /// Adds the topics to all relays.
    public func watch(_ contentTopics: [ContentTopic]) {
        for relay in relays { relay.watch(contentTopics) }
    }

    /// Removes the topics from all relays.
    public func unwatch(_ contentTopics: [ContentTopic]) {
        for relay in relays { relay.unwatch(contentTopics) }
    }

    /// The peers of all relays.
    public var peers: [RelayPeer] { relays.flatMap(\.peers) }
    /// The sums over all relays.
    public var traffic: RelayTraffic { relays.reduce(RelayTraffic()) { $0 + $1.traffic } }
    /// The addresses of all relays.
    public var ownAddresses: [String] { relays.flatMap(\.ownAddresses) }

    /// Closes the relays concurrently: each may first send what was published.
    public func close() async {
        await withDiscardingTaskGroup { group in
            for relay in relays { group.addTask { await relay.close() } }
        }
    }
}
