import Core
public import GossipSub
public import LibP2P
import NIOCore
import Synchronization
import Waku

/// The gossip state and counts of one peer.
public struct PeerGossip: Hashable, Sendable {
    /// The peer.
    public let peer: PeerID
    /// Its score, subscriptions and meshes.
    public let status: GossipPeerStatus
    /// Messages received from the peer since it connected, duplicates included.
    public let receivedCount: Int
    /// Messages queued for the peer since it connected, replies to IWANT included.
    public let sentCount: Int
    /// When the last frame was received; before the first one, when the peer connected.
    let heardAt: Instant
    /// Whether this node dialed the peer.
    let isOutbound: Bool
}

/// How messages on a topic are received.
struct TopicReception: Hashable {
    /// Whether a connected peer subscribed to it, in the mesh or not.
    var hasPeers = false
    /// Whether its mesh has a peer that this node chose: messages that nobody sends are then assumed not to exist.
    var isCovered = false
    /// Messages since then may be lost: see ``TopicCoverage``. Reported once, while the topic is covered.
    var lostFrom: Instant?
}

/// Drives the gossipsub state machine and the peers' outbound queues: received frames come in; frames to write and messages to deliver come
/// out.
///
/// One lock protects the state machine. It is held only for its decisions: frames are parsed before, messages are validated after. No method
/// waits.
///
/// Accepted messages are held until ``forward(_:)``: peers that send one meanwhile are not sent a copy.
final class GossipDriver: Sendable {
    /// The actions to carry out outside of the lock.
    struct Outcome {
        var messages: [ReceivedMessage] = []
        /// To pass to ``GossipDriver/forward(_:)``, which must follow.
        var held: [Held] = []
        /// Valid messages on unwanted topics.
        var unwantedCount = 0
        var peersToLeave: [PeerID] = []
        /// Those of them that misbehaved, with their scores.
        var misbehaving: [(peer: PeerID, score: Double)] = []
        /// The number of peers that this node chose and for which a message was queued, without one being dropped.
        var chosenRecipientCount = 0
        /// Messages to validate; empty once ``GossipDriver/received(_:from:)`` returns.
        fileprivate var unjudged: [GossipMessage] = []
    }

    /// An accepted message of which the router does not know the verdict yet.
    struct Held {
        fileprivate let id: MessageID
        fileprivate let byteCount: Int
    }

    private struct Outbound {
        let peer: PeerID
        /// Identifies the connection: a peer may reconnect before the loss of its old connection is noticed, and starts over then.
        let connection: ObjectIdentifier
        /// Whether this node dialed the peer.
        let isOutbound: Bool
        /// Whether this node chose to receive from the peer.
        var isChosen: Bool
        /// The open streams on which the peer sends.
        var streamCount = 0
        /// When the last of them ended; nil while there is one, and before the first.
        var mutedAt: Instant?
        var queue = OutboundQueue()
        var receivedCount = 0
        var sentCount = 0
        /// When the last frame was received.
        var heardAt: Instant
        /// When the queue became non-empty or was last written from; nil while it is empty.
        var pendingSince: Instant?
        /// Called when frames wait to be written; nil until there is a stream to write them to.
        var onFrames: (@Sendable () -> Void)?

        mutating func send(_ item: Outgoing, _ outcome: inout Outcome, at now: Instant) {
            switch (queue.append(item), item) {
            case (.overflow, _): return outcome.peersToLeave.append(peer)
            case (.kept, .message):
                sentCount += 1
                if isChosen { outcome.chosenRecipientCount += 1 }
            case (.kept, .reply): sentCount += 1
            default: break
            }
            if pendingSince == nil { pendingSince = now }
            onFrames?()
        }

        mutating func received(messageCount: Int, at now: Instant) {
            heardAt = now
            receivedCount += messageCount
        }

        mutating func nextFrame(at now: Instant) -> [UInt8]? {
            defer { pendingSince = queue.isEmpty ? nil : now }
            return queue.nextFrame()
        }

        mutating func shorten(at now: Instant) {
            queue.shorten(at: now)
            if queue.isEmpty { pendingSince = nil }
        }
    }

    private struct State {
        var gossip: GossipSubRouter
        let topics: [String]
        /// The peers that this node chooses to receive from, besides those that it dialed; nil for all.
        var chosen: Set<PeerID>?
        var numbers: [PeerID: PeerNumber] = [:]
        var nextNumber: UInt32 = 0
        var outbounds: [PeerNumber: Outbound] = [:]
        /// The size of the held messages.
        var heldByteCount = 0
        /// The size of what waits in the queues without messages.
        var itemByteCount = 0
        /// The memory reported to ``GossipDriver/charge``.
        var chargedByteCount = 0
        /// In the order of ``topics``.
        var coverages: [TopicCoverage]

        func isChosen(_ peer: PeerID, isOutbound: Bool) -> Bool { isOutbound || chosen?.contains(peer) ?? true }

        /// Whether the peer has a place in meshes that strangers can't take. If this node chooses none, all are alike.
        func isPreferred(_ peer: PeerID, isOutbound: Bool) -> Bool { isOutbound || chosen?.contains(peer) ?? false }

        var relaying: [Outbound] {
            topics.isEmpty ? Array(outbounds.values) : topics.flatMap { gossip.subscribers(of: $0) }.compactMap { outbounds[$0] }
        }

        /// Whether messages on the topic can be exchanged. A peer whose mesh is full prunes this node, but takes its messages and announces those of
        /// others. Announcements of peers with a low score are ignored.
        func hasPeers(on topic: String) -> Bool {
            gossip.subscribers(of: topic).contains { gossip.score($0) >= gossip.configuration.score.gossipThreshold }
        }

        mutating func updateCoverage(at now: Instant) {
            for (index, topic) in topics.enumerated() {
                coverages[index].update(members: gossip.mesh(of: topic).filter { outbounds[$0]?.isChosen ?? false }, at: now)
            }
        }

        /// The connection to a peer ended.
        mutating func remove(_ number: PeerNumber, at now: Instant) {
            guard let outbound = outbounds.removeValue(forKey: number) else { return }
            itemByteCount -= outbound.queue.itemByteCount
            gossip.disconnected(number, at: now)
            updateCoverage(at: now)
        }

        /// The memory of messages and other items that wait.
        var waitingByteCount: Int { gossip.uncachedByteCount + itemByteCount }

        /// Changes the queue of a peer.
        mutating func changeQueue<R>(of number: PeerNumber, _ body: (inout Outbound) -> R?) -> R? {
            guard let index = outbounds.index(forKey: number) else { return nil }
            itemByteCount -= outbounds.values[index].queue.itemByteCount
            defer { itemByteCount += outbounds.values[index].queue.itemByteCount }
            return body(&outbounds.values[index])
        }

        mutating func accepted(_ message: GossipMessage, _ outcome: inout Outcome, at now: Instant) {
            let held = Held(id: message.id, byteCount: message.data.count)
            guard heldByteCount + held.byteCount <= GossipDriver.heldByteLimit else {
                return gossip.judged(held.id, as: .accept, at: now)
            }
            heldByteCount += held.byteCount
            outcome.held.append(held)
        }
    }

    /// The maximum size of the held messages in bytes; further ones are forwarded at once. Well below ``GossipConfiguration/pendingByteCount``, as
    /// held messages are pending.
    static let heldByteLimit = 1 << 20

    /// A peer is stalled when nothing could be written to it for this long although its queue is not empty.
    static let stallTimeout = Duration.seconds(300)

    /// A queue that is smaller is not shortened: that frees nothing.
    private static let negligibleByteCount = 16 << 10

    private let muteTimeout: Duration
    /// Called when memory was used or released, with a lock held.
    private let charge: @Sendable (Int) -> Void

    private let state: Mutex<State>
    private let validator: MessageValidator
    private let clock: @Sendable () -> Moment

    /// - Parameters:
    ///   - chosen: The peers that this node chooses to receive from, besides those that it dials; nil for all.
    ///   - muteTimeout: A peer that ended the stream on which it sends is disconnected after this long unless it opens another one.
    ///   - charge: Called with the change of the memory of what waits for peers, in bytes; with a lock held.
    init(
        configuration: GossipConfiguration, topics: [PubsubTopic], chosen: Set<PeerID>? = nil, validator: MessageValidator, seed: UInt64,
        muteTimeout: Duration = .seconds(10), charge: @escaping @Sendable (Int) -> Void = { _ in },
        clock: @escaping @Sendable () -> Moment = Moment.now
    ) {
        var gossip = GossipSubRouter(configuration: configuration, seed: seed)
        for topic in topics { gossip.subscribe(to: topic.rawValue, at: clock().instant) }
        state = Mutex(
            State(
                gossip: gossip, topics: topics.map(\.rawValue), chosen: chosen,
                coverages: Array(repeating: TopicCoverage(), count: topics.count)))
        self.muteTimeout = muteTimeout
        self.charge = charge
        self.validator = validator
        self.clock = clock
    }

    // MARK: Peers

    /// A gossip stream is open over this connection, in either direction.
    ///
    /// - Parameters:
    ///   - onFrames: Called when there are frames to write, with a lock held; nil if the stream is the peer's.
    ///   - isCurrent: Whether this is still the connection to the peer. A connection lost meanwhile must not replace its successor.
    /// - Returns: Whether it is the current connection.
    @discardableResult
    func connected(
        _ peer: PeerID, over connection: ObjectIdentifier, version: GossipVersion, isOutbound: Bool,
        onFrames: (@Sendable () -> Void)? = nil, isCurrent: () -> Bool
    ) -> (isCurrent: Bool, Outcome) {
        act { state, _, now in
            guard isCurrent() else { return false }
            let number = state.numbers[peer] ?? PeerNumber(rawValue: state.nextNumber)
            if state.numbers.updateValue(number, forKey: peer) == nil { state.nextNumber += 1 }
            if let outbound = state.outbounds[number] {
                if outbound.connection == connection {
                    state.gossip.speaks(number, version)
                    if let onFrames { state.outbounds[number]?.onFrames = onFrames }
                    return true
                }
                state.remove(number, at: now.instant)
            }
            let outbound = Outbound(
                peer: peer, connection: connection, isOutbound: isOutbound, isChosen: state.isChosen(peer, isOutbound: isOutbound),
                heardAt: now.instant, onFrames: onFrames)
            state.outbounds[number] = outbound
            state.gossip.connected(number, version: version, isOutbound: state.isPreferred(peer, isOutbound: isOutbound))
            return true
        }
    }

    /// - Parameter current: The present connection to the peer, if there is another one.
    func disconnected(_ peer: PeerID, current: ObjectIdentifier?) {
        state.withLock { state in
            guard let number = state.numbers[peer], let outbound = state.outbounds[number], outbound.connection != current else { return }
            state.remove(number, at: clock().instant)
            updateCharge(&state)
        }
    }

    /// Disconnects the peers whose connection is not the current one.
    ///
    /// - Parameter current: Returns the present connection to a peer, if there is one.
    func disconnectOthers(current: (PeerID) -> ObjectIdentifier?) {
        for peer in state.withLock({ $0.outbounds.values.map(\.peer) }) { disconnected(peer, current: current(peer)) }
    }

    /// Replaces the peers that this node chooses to receive from, besides those that it dials.
    func choose(_ peers: Set<PeerID>) {
        state.withLock { state in
            state.chosen = peers
            for (number, outbound) in state.outbounds {
                let isChosen = state.isChosen(outbound.peer, isOutbound: outbound.isOutbound)
                state.outbounds[number]?.isChosen = isChosen
                state.gossip.count(number, asOutbound: state.isPreferred(outbound.peer, isOutbound: outbound.isOutbound))
            }
            state.updateCoverage(at: clock().instant)
        }
    }

    /// The peer opened a stream on which it sends.
    func streamBegan(of peer: PeerID, over connection: ObjectIdentifier) {
        change(peer, over: connection) { outbound, _ in
            outbound.streamCount += 1
            outbound.mutedAt = nil
        }
    }

    /// The peer ended a stream on which it sends.
    func streamEnded(of peer: PeerID, over connection: ObjectIdentifier) {
        change(peer, over: connection) { outbound, now in
            outbound.streamCount -= 1
            if outbound.streamCount == 0 { outbound.mutedAt = now }
        }
    }

    private func change(_ peer: PeerID, over connection: ObjectIdentifier, _ body: (inout Outbound, Instant) -> Void) {
        state.withLock { state in
            guard let number = state.numbers[peer], var outbound = state.outbounds[number], outbound.connection == connection else {
                return
            }
            body(&outbound, clock().instant)
            state.outbounds[number] = outbound
        }
    }

    /// The next length-prefixed frame, or the next piece of a large one, to write to a peer; nil when there is none.
    func nextFrame(to peer: PeerID, over connection: ObjectIdentifier) -> ByteBuffer? {
        state.withLock { state in
            guard let number = state.numbers[peer], state.outbounds[number]?.connection == connection else { return nil }
            defer { updateCharge(&state) }
            return state.changeQueue(of: number) { $0.nextFrame(at: clock().instant).map { ByteBuffer(bytes: $0) } }
        }
    }

    /// Whether frames wait to be written to a peer.
    func isFrameQueued(to peer: PeerID, over connection: ObjectIdentifier) -> Bool {
        state.withLock { state in
            guard let number = state.numbers[peer], let outbound = state.outbounds[number] else { return false }
            return outbound.connection == connection && !outbound.queue.isEmpty
        }
    }

    // MARK: Memory

    /// Frees memory by shortening queues, see ``OutboundQueue/shorten(at:)``: those of peers outside of the meshes first, the longest first.
    ///
    /// - Parameters:
    ///   - byteCount: The memory to free.
    ///   - meshByteCount: The queues of peers in a mesh are shortened only while this much waits for all peers.
    /// - Returns: The size of what still waits for each peer.
    func free(_ byteCount: Int, keeping meshByteCount: Int) -> [PeerID: Int] {
        state.withLock { state in
            let now = clock().instant
            let members = Set(state.topics.flatMap { state.gossip.mesh(of: $0) })
            let target = state.waitingByteCount - byteCount
            let long = state.outbounds.mapValues(\.queue.byteCount).filter { $0.value >= Self.negligibleByteCount }
            for isMember in [false, true] {
                let end = isMember ? max(target, meshByteCount) : target
                let order = long.filter { members.contains($0.key) == isMember }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
                for (number, _) in order where state.waitingByteCount > end {
                    state.changeQueue(of: number) { $0.shorten(at: now) }
                }
            }
            updateCharge(&state)
            return Dictionary(state.outbounds.values.map { ($0.peer, $0.queue.byteCount) }) { max($0, $1) }
        }
    }

    private func updateCharge(_ state: inout State) {
        let byteCount = state.waitingByteCount
        guard byteCount != state.chargedByteCount else { return }
        charge(byteCount - state.chargedByteCount)
        state.chargedByteCount = byteCount
    }

    // MARK: Events

    func received(_ frames: [ByteBuffer], from peer: PeerID) -> Outcome {
        var outcome = Outcome()
        // One by one, so that only the messages of one frame and those held are pending validation at a time.
        for frame in frames {
            let rpc = try? GossipRPC(parsing: Array(frame.readableBytesView))
            act(&outcome) { state, _, now in
                guard let number = state.numbers[peer] else { return }
                state.outbounds[number]?.received(messageCount: rpc?.messageCount ?? 0, at: now.instant)
                for index in state.coverages.indices { state.coverages[index].heard(number, at: now.instant) }
                if let rpc {
                    state.gossip.received(rpc, from: number, at: now.instant)
                } else {
                    state.gossip.receivedMalformed(from: number)
                }
            }
            validate(&outcome)
        }
        return outcome
    }

    private func validate(_ outcome: inout Outcome) {
        guard !outcome.unjudged.isEmpty else { return }
        let time = clock().wallClock
        let judgements = outcome.unjudged.map { (message: $0, judgement: validator.judge($0, at: time)) }
        outcome.unjudged = []
        act(&outcome) { state, outcome, now in
            for (message, judgement) in judgements {
                if judgement.verdict == .accept {
                    state.accepted(message, &outcome, at: now.instant)
                } else {
                    state.gossip.judged(message.id, as: judgement.verdict, at: now.instant)
                }
            }
        }
        for (_, judgement) in judgements {
            guard let message = judgement.message else { continue }
            if judgement.isWanted { outcome.messages.append(message) } else { outcome.unwantedCount += 1 }
        }
    }

    /// Forwards held messages to the peers that did not send them meanwhile.
    func forward(_ held: [Held]) -> Outcome {
        act { state, _, now in
            for message in held {
                state.heldByteCount -= message.byteCount
                state.gossip.judged(message.id, as: .accept, at: now.instant)
            }
        }.1
    }

    func publish(_ data: [UInt8], on topic: PubsubTopic) -> (GossipPublication, Outcome) {
        act { state, _, now in state.gossip.publish(data, on: topic.rawValue, at: now.instant) }
    }

    func heartbeat() -> Outcome {
        act { state, outcome, now in
            state.gossip.heartbeat(at: now.instant)
            state.updateCoverage(at: now.instant)
            for outbound in state.outbounds.values where now.instant - (outbound.mutedAt ?? now.instant) >= muteTimeout {
                outcome.peersToLeave.append(outbound.peer)
            }
            // Release the numbers of forgotten peers from time to time.
            if state.numbers.count > 2 * state.outbounds.count + 64 {
                state.numbers = state.numbers.filter { state.outbounds[$0.value] != nil || state.gossip.remembers($0.value) }
            }
        }.1
    }

    /// For each of this node's topics, how messages were received at the last heartbeat.
    func takeReceptions() -> [TopicReception] {
        state.withLock { state in
            state.topics.enumerated().map { index, topic in
                TopicReception(
                    hasPeers: state.hasPeers(on: topic), isCovered: state.coverages[index].isCovered,
                    lostFrom: state.coverages[index].takeLoss())
            }
        }
    }

    /// The peers that subscribed to one of this node's topics; all of a node without topics, which only publishes.
    var relayingPeers: Set<PeerID> { state.withLock { Set($0.relaying.map(\.peer)) } }

    /// Those of ``relayingPeers`` that this node chose to receive from.
    var chosenPeers: Set<PeerID> { state.withLock { Set($0.relaying.filter(\.isChosen).map(\.peer)) } }

    /// Peers to which nothing could be written for ``stallTimeout``: their queues would stay full forever.
    var stalledPeers: [PeerID] {
        state.withLock { state in
            let now = clock().instant
            return state.outbounds.values.filter { now - ($0.pendingSince ?? now) >= Self.stallTimeout }.map(\.peer)
        }
    }

    var queuedByteCount: Int { state.withLock { $0.outbounds.values.reduce(0) { max($0, $1.queue.byteCount) } } }

    var counters: GossipCounters { state.withLock { $0.gossip.counters } }

    var statuses: [PeerGossip] {
        state.withLock { state in
            state.gossip.peerStatuses.compactMap { status in
                state.outbounds[status.peer].map { outbound in
                    PeerGossip(
                        peer: outbound.peer, status: status, receivedCount: outbound.receivedCount, sentCount: outbound.sentCount,
                        heardAt: outbound.heardAt, isOutbound: outbound.isOutbound)
                }
            }
        }
    }

    // MARK: Actions

    private func act<R: Sendable>(_ body: (inout State, inout Outcome, Moment) -> R) -> (R, Outcome) {
        var outcome = Outcome()
        return (act(&outcome, body), outcome)
    }

    private func act<R: Sendable>(_ outcome: inout Outcome, _ body: (inout State, inout Outcome, Moment) -> R) -> R {
        state.withLock { state in
            let now = clock()
            let result = body(&state, &outcome, now)
            perform(&state, &outcome, at: now)
            updateCharge(&state)
            return result
        }
    }

    private func perform(_ state: inout State, _ outcome: inout Outcome, at now: Moment) {
        while !state.gossip.actions.isEmpty {
            for action in state.gossip.takeActions() {
                switch action {
                case .send(let item, let number): send(item, to: number, &state, &outcome, at: now)
                case .forward(let message, let numbers):
                    for number in numbers { send(.message(message), to: number, &state, &outcome, at: now) }
                case .validate(let message, _): outcome.unjudged.append(message)
                case .disconnect(let number):
                    guard let outbound = state.outbounds[number] else { continue }
                    outcome.peersToLeave.append(outbound.peer)
                    outcome.misbehaving.append((outbound.peer, state.gossip.score(number)))
                }
            }
        }
    }

    private func send(_ item: Outgoing, to number: PeerNumber, _ state: inout State, _ outcome: inout Outcome, at now: Moment) {
        state.changeQueue(of: number) { $0.send(item, &outcome, at: now.instant) }
    }
}
