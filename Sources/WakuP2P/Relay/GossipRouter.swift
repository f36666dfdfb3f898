import Primitives
public import GossipSub
public import LibP2P
import NIOCore
import Synchronization
import Waku

/// What is known of a peer's gossip.
public struct PeerGossip: Hashable, Sendable {
    public let peer: PeerID
    public let status: GossipPeerStatus
    /// Messages, whatever became of them.
    public let receivedCount: Int
    public let sentCount: Int
    /// When a frame last came, or it was connected: uptime.
    let heardAt: Instant
}

/// Holds the state machine of gossip together with the peers' queues: frames come in, frames to write and messages to hand over come out.
///
/// The state machine is behind one lock, which is held for its decisions alone: frames are parsed before it is taken, and messages are validated after it
/// was let go. Nothing here waits.
final class GossipRouter: Sendable {
    /// What is left to do outside of the lock.
    struct Outcome {
        var messages: [ReceivedMessage] = []
        /// On topics that nobody wants.
        var unwantedCount = 0
        var peersToLeave: [PeerID] = []
        /// Those that wait for their verdict; empty once ``GossipRouter/received(_:from:)`` returns.
        fileprivate var unjudged: [GossipMessage] = []

        fileprivate mutating func append(_ other: Outcome) {
            messages += other.messages
            unwantedCount += other.unwantedCount
            peersToLeave += other.peersToLeave
        }
    }

    private struct Outlet {
        let peer: PeerID
        /// A peer may come back before it is known that it went: what it said then is not said again.
        let connection: ObjectIdentifier
        var queue = OutboundQueue()
        var receivedCount = 0
        var sentCount = 0
        /// When a frame last came.
        var heardAt: Instant
        /// Since when the first frame waits to be written.
        var waitsSince: Instant?
        /// Frames wait to be written.
        let framesQueued = WakeUpSignal()

        mutating func nextFrame(at now: Instant) -> [UInt8]? {
            defer { waitsSince = queue.isEmpty ? nil : now }
            return queue.nextFrame()
        }
    }

    private struct State {
        var gossip: GossipSub
        var numbers: [PeerID: PeerNumber] = [:]
        var nextNumber: UInt32 = 0
        var outlets: [PeerNumber: Outlet] = [:]
        var outcome = Outcome()
    }

    /// How long a frame may wait until its stream takes it.
    static let patience = Duration.seconds(300)

    private let state: Mutex<State>
    private let validator: MessageValidator
    private let clock: @Sendable () -> Moment

    init(
        configuration: GossipConfiguration, topics: [PubsubTopic], validator: MessageValidator, seed: UInt64,
        clock: @escaping @Sendable () -> Moment = Moment.now
    ) {
        var gossip = GossipSub(configuration: configuration, seed: seed)
        for topic in topics { gossip.subscribe(to: topic.rawValue, at: clock().instant) }
        state = Mutex(State(gossip: gossip))
        self.validator = validator
        self.clock = clock
    }

    // MARK: Peers

    /// A stream of gossip is open over this connection, either way.
    /// - Parameter isCurrent: Whether this is the connection to the peer. One that was lost meanwhile must not take its successor's place.
    /// - Returns: Yields when there are frames to write; ends when the peer is gone.
    @discardableResult
    func connected(
        _ peer: PeerID, over connection: ObjectIdentifier, version: GossipVersion, isOutbound: Bool, isCurrent: () -> Bool
    ) -> (framesQueued: WakeUpSignal, Outcome) {
        act { state, now in
            guard isCurrent() else {
                let ended = WakeUpSignal()
                ended.finish()
                return ended
            }
            let number = state.numbers[peer] ?? PeerNumber(rawValue: state.nextNumber)
            if state.numbers.updateValue(number, forKey: peer) == nil { state.nextNumber += 1 }
            if let outlet = state.outlets[number] {
                if outlet.connection == connection {
                    state.gossip.speaks(number, version)
                    return outlet.framesQueued
                }
                outlet.framesQueued.finish()
                state.gossip.disconnected(number, at: now.instant)
            }
            let outlet = Outlet(peer: peer, connection: connection, heardAt: now.instant)
            state.outlets[number] = outlet
            state.gossip.connected(number, version: version, isOutbound: isOutbound)
            return outlet.framesQueued
        }
    }

    /// - Parameter current: The connection that there is to it all the same, if any.
    func disconnected(_ peer: PeerID, current: ObjectIdentifier?) {
        state.withLock { state in
            guard let number = state.numbers[peer], let outlet = state.outlets[number], outlet.connection != current else { return }
            state.outlets[number] = nil
            outlet.framesQueued.finish()
            state.gossip.disconnected(number, at: clock().instant)
        }
    }

    /// What is to be written to a peer next, with its length; nil when there is nothing.
    func nextFrame(to peer: PeerID, over connection: ObjectIdentifier) -> ByteBuffer? {
        state.withLock { state in
            guard let number = state.numbers[peer], state.outlets[number]?.connection == connection else { return nil }
            return state.outlets[number]?.nextFrame(at: clock().instant).map { ByteBuffer(bytes: $0) }
        }
    }

    // MARK: Events

    func received(_ frames: [ByteBuffer], from peer: PeerID) -> Outcome {
        var outcome = Outcome()
        // One by one: no more than a frame's messages wait for their verdicts at a time.
        for frame in frames {
            let rpc = try? GossipRPC(parsing: Array(frame.readableBytesView))
            let received = act { state, now in
                guard let number = state.numbers[peer] else { return }
                state.outlets[number]?.heardAt = now.instant
                if let rpc {
                    state.outlets[number]?.receivedCount += rpc.messageCount
                    state.gossip.received(rpc, from: number, at: now.instant)
                } else {
                    state.gossip.receivedMalformed(from: number)
                }
            }.1
            outcome.append(received)
            outcome.append(validate(received.unjudged))
        }
        return outcome
    }

    private func validate(_ messages: [GossipMessage]) -> Outcome {
        guard !messages.isEmpty else { return Outcome() }
        let time = clock().wallClock
        let judgements = messages.map { (id: $0.id, judgement: validator.judge($0, at: time)) }
        var outcome = act { state, now in
            for (id, judgement) in judgements { state.gossip.judged(id, as: judgement.verdict, at: now.instant) }
        }.1
        for (_, judgement) in judgements {
            guard let message = judgement.message else { continue }
            if judgement.isWanted { outcome.messages.append(message) } else { outcome.unwantedCount += 1 }
        }
        return outcome
    }

    func publish(_ data: [UInt8], on topic: PubsubTopic) -> (GossipPublication, Outcome) {
        act { state, now in state.gossip.publish(data, on: topic.rawValue, at: now.instant) }
    }

    func heartbeat() -> Outcome {
        act { state, now in
            state.gossip.heartbeat(at: now.instant)
            // Numbers of peers that are forgotten are given up, now and then.
            if state.numbers.count > 2 * state.outlets.count + 64 {
                state.numbers = state.numbers.filter { state.outlets[$0.value] != nil || state.gossip.remembers($0.value) }
            }
        }.1
    }

    func hasPeers(on topics: [PubsubTopic]) -> [Bool] {
        state.withLock { state in topics.map { !state.gossip.mesh(of: $0.rawValue).isEmpty } }
    }

    /// To which nothing could be written for long, though something waits: their queues would stay full for good.
    var peersThatTakeNothing: [PeerID] {
        state.withLock { state in
            let now = clock().instant
            return state.outlets.values.filter { now - ($0.waitsSince ?? now) >= Self.patience }.map(\.peer)
        }
    }

    var queuedByteCount: Int { state.withLock { $0.outlets.values.reduce(0) { max($0, $1.queue.byteCount) } } }

    var counters: GossipCounters { state.withLock { $0.gossip.counters } }

    var statuses: [PeerGossip] {
        state.withLock { state in
            state.gossip.peerStatuses.compactMap { status in
                state.outlets[status.peer].map { outlet in
                    PeerGossip(
                        peer: outlet.peer, status: status, receivedCount: outlet.receivedCount, sentCount: outlet.sentCount,
                        heardAt: outlet.heardAt)
                }
            }
        }
    }

    // MARK: Actions

    private func act<R: Sendable>(_ body: (inout State, Moment) -> R) -> (R, Outcome) {
        state.withLock { state in
            let now = clock()
            let result = body(&state, now)
            perform(&state, at: now)
            defer { state.outcome = Outcome() }
            return (result, state.outcome)
        }
    }

    private func perform(_ state: inout State, at now: Moment) {
        while true {
            let actions = state.gossip.takeActions()
            if actions.isEmpty { return }
            for action in actions {
                switch action {
                case .send(let item, let number): send(item, to: number, &state, at: now)
                case .forward(let message, let numbers):
                    for number in numbers { send(.message(message), to: number, &state, at: now) }
                case .validate(let message, _): state.outcome.unjudged.append(message)
                case .disconnect(let number): if let outlet = state.outlets[number] { state.outcome.peersToLeave.append(outlet.peer) }
                }
            }
        }
    }

    private func send(_ item: Outgoing, to number: PeerNumber, _ state: inout State, at now: Moment) {
        guard let enqueued = state.outlets[number]?.queue.append(item), let outlet = state.outlets[number] else { return }
        if enqueued == .kept {
            switch item {
            case .message, .reply: state.outlets[number]?.sentCount += 1
            default: break
            }
        }
        if enqueued == .overflow {
            state.outcome.peersToLeave.append(outlet.peer)
        } else {
            if outlet.waitsSince == nil { state.outlets[number]?.waitsSince = now.instant }
            outlet.framesQueued.signal()
        }
    }
}
