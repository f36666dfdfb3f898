import Core
import TestSupport

@testable import GossipSub

/// Many routers on lossy links in simulated time, some of them hostile. All traffic passes through the real queues, frames and parser; a run is
/// determined by its seed.
///
/// A link delivers frames in order, with a constant latency. It loses the items that a full queue would drop: messages and gossip, never control.
/// From time to time it breaks, and is dialed again.
struct GossipSimulation {
    struct Settings {
        var nodeCount = 200
        var hostileCount = 0
        /// The number of nodes that each node dials.
        var dialCount = 10
        var messageCount = 40
        var seconds = 30
        /// The loss rate of messages and gossip on each link, per 1000.
        var lossPermille = 20
        /// The number of links that break per second, in the whole network.
        var breaksASecond = 20
        var data = 200
    }

    /// The results of a run.
    struct Figures: CustomStringConvertible {
        var messageCount = 0
        var honestCount = 0
        /// The expected number of deliveries to honest nodes.
        var expected = 0
        var arrived = 0
        var copies = 0
        var latencies: [Duration] = []
        /// The mesh sizes of all honest nodes after each heartbeat since the warm-up.
        var degrees: [Int] = []
        /// The number of meshes below the minimum size although there were candidates.
        var starved = 0
        var invalidForwarded = 0
        var honestGraylisted = 0
        /// The number of connections between an honest node and a hostile peer; then, of those left at the end.
        var hostileLinks = 0
        var hostileLinksLeft = 0
        var replies = 0
        var digest: UInt64 = 0

        var duplicatesAMessage: Double { Double(copies - arrived) / Double(max(arrived, 1)) }
        private func latency(_ permille: Int) -> Duration { latencies.isEmpty ? .zero : latencies[(latencies.count - 1) * permille / 1000] }

        var description: String {
            let mean = Double(degrees.reduce(0, +)) / Double(max(degrees.count, 1))
            let within = degrees.count { 4...8 ~= $0 } * 1000 / max(degrees.count, 1)
            return """
                \(arrived) of \(expected) deliveries of \(messageCount) messages to \(honestCount) nodes; \(duplicatesAMessage) duplicates \
                a delivery; latency p50 \(latency(500)) p99 \(latency(990)) max \(latency(1000)); mesh degree mean \(mean), \
                \(degrees.min() ?? 0)–\(degrees.max() ?? 0), \(within) ‰ within 4–8, starved \(starved); \(replies) replies to IWANT; \
                hostile links \(hostileLinks), left \(hostileLinksLeft); honest peers graylisted \(honestGraylisted), invalid forwarded \
                \(invalidForwarded)
                """
        }
    }

    private struct Link {
        var isUp = false
        /// Frames sent before the link last broke do not arrive.
        var life = 0
        let latency: Duration
        let dialer: Int
        /// The arrival time of the last frame in each direction: TCP keeps the order.
        var lastArrival = [Instant.zero, .zero]
    }

    private enum Event {
        case frame([UInt8], from: Int, to: Int, life: Int)
        case heartbeat(Int)
        case publish
        case breakLink
        case dial(Int, Int)
    }

    private struct Node {
        var gossip: GossipSubRouter
        let isHostile: Bool
        var links: [Int] = []
        var queues: [Int: OutboundQueue] = [:]
    }

    private static let topic = "/waku/2/rs/16/32"
    private static let invalidMark: UInt8 = 0xFF
    /// Hostile nodes start after the warm-up.
    private static let warmUp = Instant.seconds(5)

    private let settings: Settings
    private var generator: SeededGenerator
    private var nodes: [Node] = []
    /// By both ends, the lower one first.
    private var links: [[Int]: Link] = [:]
    private var order: [[Int]] = []
    private var events = EventQueue<Instant, Event>()
    private var now = Instant.zero
    private var published: [MessageID: Instant] = [:]
    private var delivered: [MessageID: Set<Int>] = [:]
    private(set) var figures = Figures()

    init(seed: UInt64, settings: Settings) {
        self.settings = settings
        generator = SeededGenerator(seed: seed)
        // Hostile nodes are spread randomly.
        let hostile = Set((0..<settings.nodeCount).shuffled(using: &generator).prefix(settings.hostileCount))
        for number in 0..<settings.nodeCount {
            var gossip = GossipSubRouter(seed: generator.next())
            gossip.subscribe(to: Self.topic, at: .zero)
            nodes.append(Node(gossip: gossip, isHostile: hostile.contains(number)))
            events.add(.heartbeat(number), at: .milliseconds(Int.random(in: 0..<1000, using: &generator)))
        }
        for number in nodes.indices {
            for _ in 0..<settings.dialCount {
                let other = Int.random(in: nodes.indices, using: &generator)
                let key = [min(number, other), max(number, other)]
                guard other != number, links[key] == nil else { continue }
                links[key] = Link(latency: .milliseconds(Int.random(in: 5...80, using: &generator)), dialer: number)
                order.append(key)
                nodes[number].links.append(other)
                nodes[other].links.append(number)
                if hostile.contains(number) != hostile.contains(other) { figures.hostileLinks += 1 }
            }
        }
        for key in order { connect(key) }
        for index in 0..<settings.messageCount {
            let span = Duration.seconds(settings.seconds - 15)
            events.add(.publish, at: Self.warmUp + span * index / settings.messageCount)
        }
        for index in 0..<settings.breaksASecond * (settings.seconds - 10) {
            events.add(.breakLink, at: .seconds(2) + .milliseconds(1000 * index / max(settings.breaksASecond, 1)))
        }
    }

    mutating func run() {
        while let (time, event) = events.pop(), time < .seconds(settings.seconds) {
            now = time
            switch event {
            case .frame(let frame, let from, let to, let life): arrive(frame, from: from, to: to, life: life)
            case .heartbeat(let number): heartbeat(number)
            case .publish: publish()
            case .breakLink: breakLink()
            case .dial(let low, let high): connect([low, high])
            }
        }
        finish()
    }

    // MARK: Links

    private static func key(_ one: Int, _ other: Int) -> [Int] { [min(one, other), max(one, other)] }

    private mutating func connect(_ key: [Int]) {
        guard let link = links[key], !link.isUp else { return }
        links[key]?.isUp = true
        for (number, other) in [(key[0], key[1]), (key[1], key[0])] {
            nodes[number].queues[other] = OutboundQueue()
            nodes[number].gossip.connected(peer(UInt32(other)), version: .v11, isOutbound: link.dialer == number)
        }
        perform(key[0])
        perform(key[1])
    }

    private mutating func disconnect(_ key: [Int], redialAfter pause: Duration?) {
        guard links[key]?.isUp == true else { return }
        links[key]?.isUp = false
        links[key]?.life += 1
        for (number, other) in [(key[0], key[1]), (key[1], key[0])] {
            nodes[number].queues[other] = nil
            nodes[number].gossip.disconnected(peer(UInt32(other)), at: now)
        }
        if let pause { events.add(.dial(key[0], key[1]), at: now + pause) }
        perform(key[0])
        perform(key[1])
    }

    private mutating func breakLink() {
        disconnect(generator.pick(order), redialAfter: .milliseconds(Int.random(in: 500...3000, using: &generator)))
    }

    // MARK: Nodes

    private mutating func heartbeat(_ number: Int) {
        events.add(.heartbeat(number), at: now + .seconds(1))
        if nodes[number].isHostile {
            if now > Self.warmUp { attack(from: number) }
        } else {
            nodes[number].gossip.heartbeat(at: now)
            perform(number)
            if now > Self.warmUp { noteDegree(number) }
        }
    }

    private mutating func noteDegree(_ number: Int) {
        let gossip = nodes[number].gossip
        let degree = gossip.mesh(of: Self.topic).count
        figures.degrees.append(degree)
        if degree < gossip.configuration.meshLow {
            let candidates = gossip.subscribers(of: Self.topic).filter { peer in
                !gossip.mesh(of: Self.topic).contains(peer) && gossip.score(peer) >= 0
                    && gossip.topics[Self.topic]?.backoff[peer] == nil
            }
            if !candidates.isEmpty { figures.starved += 1 }
        }
    }

    private mutating func publish() {
        let honest = nodes.indices.filter { !nodes[$0].isHostile }
        let number = generator.pick(honest)
        let data = [0] + generator.bytes(settings.data)
        let id = MessageID(of: data[...])
        guard case .sent = nodes[number].gossip.publish(data, on: Self.topic, at: now) else { return }
        published[id] = now
        delivered[id] = [number]
        figures.messageCount += 1
        figures.expected += honest.count - 1
        perform(number)
    }

    /// Sends invalid messages, grafts during and after the backoff, and announcements of missing messages to all peers.
    private mutating func attack(from number: Int) {
        let fake = (0..<20).map { _ in MessageID(of: generator.bytes(8)[...]) }
        for other in nodes[number].links where nodes[number].queues[other] != nil {
            let spam = GossipMessage(topic: Self.topic, data: [Self.invalidMark] + generator.bytes(16))
            for item in [.message(spam), .graft(topic: Self.topic), .ihave(topic: Self.topic, ids: fake)] as [Outgoing] {
                _ = nodes[number].queues[other]?.append(item)
            }
            flush(number, to: other)
        }
    }

    private mutating func arrive(_ frame: [UInt8], from: Int, to: Int, life: Int) {
        guard let link = links[Self.key(from, to)], link.isUp, link.life == life else { return }
        guard let rpc = try? GossipRPC(parsing: frame) else {
            nodes[to].gossip.receivedMalformed(from: peer(UInt32(from)))
            return
        }
        if nodes[to].isHostile {
            // It only receives subscriptions: it forwards and answers nothing.
            return
        }
        nodes[to].gossip.received(rpc, from: peer(UInt32(from)), at: now)
        perform(to)
    }

    /// Performs the node's actions until there are none left.
    private mutating func perform(_ number: Int) {
        var touched: [Int] = []
        while true {
            let actions = nodes[number].gossip.takeActions()
            if actions.isEmpty { break }
            for action in actions {
                switch action {
                case .send(let item, let to):
                    send(item, from: number, to: Int(to.rawValue), &touched)
                case .forward(let message, let peers):
                    if message.data.first == Self.invalidMark { figures.invalidForwarded += 1 }
                    for to in peers { send(.message(message), from: number, to: Int(to.rawValue), &touched) }
                case .validate(let message, _):
                    let isInvalid = message.data.first == Self.invalidMark
                    if !isInvalid, delivered[message.id]?.insert(number).inserted == true {
                        figures.latencies.append(now - (published[message.id] ?? now))
                    }
                    nodes[number].gossip.judged(message.id, as: isInvalid ? .reject : .accept, at: now)
                case .disconnect(let other):
                    if !nodes[Int(other.rawValue)].isHostile { figures.honestGraylisted += 1 }
                    disconnect(Self.key(number, Int(other.rawValue)), redialAfter: nil)
                }
            }
        }
        for other in touched { flush(number, to: other) }
    }

    private mutating func send(_ item: Outgoing, from number: Int, to other: Int, _ touched: inout [Int]) {
        guard nodes[number].queues[other] != nil else { return }
        switch item {
        case .message, .reply, .ihave, .iwant, .idontwant:
            if Int.random(in: 0..<1000, using: &generator) < settings.lossPermille { return }
        case .subscription, .graft, .prune: break
        }
        _ = nodes[number].queues[other]?.append(item)
        if !touched.contains(other) { touched.append(other) }
    }

    private mutating func flush(_ number: Int, to other: Int) {
        let key = Self.key(number, other)
        guard let link = links[key], link.isUp else { return }
        let way = number < other ? 0 : 1
        var framing = FrameSplitter(limit: GossipRPC.maximumByteCount)
        while let bytes = nodes[number].queues[other]?.nextFrame() {
            framing.append(bytes)
            guard let frame = try? framing.next() else { continue }
            let arrival = max(link.lastArrival[way], now + link.latency)
            links[key]?.lastArrival[way] = arrival
            events.add(.frame(frame, from: number, to: other, life: link.life), at: arrival)
        }
    }

    // MARK: Figures

    private mutating func finish() {
        let honest = nodes.filter { !$0.isHostile }
        figures.honestCount = honest.count
        // Without the publisher itself.
        figures.arrived = delivered.values.reduce(0) { $0 + $1.count - 1 }
        figures.latencies.sort()
        for node in honest {
            let counters = node.gossip.counters
            figures.copies += counters.accepted + counters.duplicates
            figures.replies += counters.replies
        }
        figures.hostileLinksLeft = order.count { key in
            nodes[key[0]].isHostile != nodes[key[1]].isHostile && links[key]?.isUp == true
        }
        var digest: UInt64 = 0xCBF2_9CE4_8422_2325
        for node in nodes {
            let counters = node.gossip.counters
            for number in [counters.received, counters.duplicates, counters.forwarded, counters.replies] {
                digest = (digest ^ UInt64(number)) &* 0x100_0000_01B3
            }
        }
        figures.digest = digest
    }
}
