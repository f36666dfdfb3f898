/// Several ways onto the network at once: what one misses, another brings.
///
/// A message comes in once from each, perhaps at the same time: whoever takes them recognises messages by their hash.
public struct RelaySet: Relay {
    /// In order of preference for publishing.
    public let relays: [any Relay]

    public init(_ relays: [any Relay]) {
        self.relays = relays
    }

    /// `deliver` runs once for each relay, at the same time.
    public func run(deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void) async {
        await withDiscardingTaskGroup { group in
            for relay in relays {
                group.addTask { await relay.run(deliver: deliver) }
            }
        }
    }

    /// By the first attached relay that takes it; then by the others, which may still publish while nothing comes in.
    @discardableResult
    public func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let attached = relays.filter { $0.state == .attached }
        let detached = relays.filter { $0.state != .attached }
        var lastError = RelayError(code: .unavailable, message: "there is no node to publish by: configure one")
        for relay in attached + detached {
            do throws(RelayError) {
                return try await relay.publish(message, on: pubsubTopic)
            } catch {
                // Another node refuses it for the same reasons.
                if error.code == .refused { throw error }
                lastError = error
            }
        }
        throw lastError
    }

    /// At one after the other, attached or not, until all are found: a message that one node's store misses may have reached another's.
    public func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        var found: Set<MessageHash> = []
        var failures: [RelayError] = []
        for relay in relays where found.count < hashes.count {
            do throws(RelayError) {
                found.formUnion(try await relay.lookUp(hashes.filter { !found.contains($0) }))
            } catch {
                failures.append(error)
            }
        }
        // What one of them tells is worth more than that another can't be asked; a store that may answer later more than none.
        if failures.count == relays.count {
            throw failures.first { $0.code == .unavailable } ?? failures.first
                ?? RelayError(code: .refused, message: "there is no node to look messages up at")
        }
        return found
    }

    /// Attached if any is; else why not, one after the other.
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

    /// What reached one of them was seen, so a topic was seen as far as the best of them got: one that is away, or that waits for its store,
    /// holds nothing up. Each tells only of what it handed over itself, so that the furthest is never too far.
    public var seenUntil: [PubsubTopic: Timestamp] {
        relays.reduce(into: [:]) { furthest, relay in furthest.merge(relay.seenUntil, uniquingKeysWith: max) }
    }

    public func watch(_ contentTopics: [ContentTopic]) {
        for relay in relays { relay.watch(contentTopics) }
    }

    public var peers: [RelayPeer] { relays.flatMap(\.peers) }
    public var traffic: RelayTraffic { relays.reduce(RelayTraffic()) { $0 + $1.traffic } }
    public var ownAddresses: [String] { relays.flatMap(\.ownAddresses) }

    public func close() async {
        for relay in relays { await relay.close() }
    }
}
