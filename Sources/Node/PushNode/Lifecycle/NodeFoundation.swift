import Core
import Delivery
import Logging
import NodeAPI
import NodeMetrics
import Storage
import Waku

/// The parts from which all others of a node are made: its folder, store, clocks, counters and membership.
struct NodeFoundation: Sendable {
    let configuration: NodeConfiguration
    let protocols: [any NodeProtocol]
    let logger: Logger
    /// For errors that may occur with every message.
    let errors: RepeatedErrors
    let now: @Sendable () -> Timestamp
    let counters: Counters
    let folder: DataFolder
    let store: any Store
    let alarms: Alarms
    let clock: ClockMonitor
    let catchUp: CatchUpMonitor
    let cluster: any ClusterMembership
    let drain = Drain()
    let refusedPeers = RefusedPeers()

    /// Locks the data folder, opens the store, and creates the membership. For the parameters see ``NodeService``.
    init(
        _ configuration: NodeConfiguration, protocols: [any NodeProtocol], knownParts: [StorePart], gorush: [GorushEndpoint],
        logger: Logger, now: @escaping @Sendable () -> Timestamp, openStore: ([StorePart]) throws -> any Store,
        makeCluster: (ClusterNeeds) throws -> any ClusterMembership
    ) throws {
        self.configuration = configuration
        self.protocols = protocols
        self.logger = logger
        self.now = now
        errors = RepeatedErrors(logger)
        counters = Counters(
            NodeService.metrics(of: protocols), protocols: Set(protocols.map(\.label)),
            withoutWaku: Set(protocols.filter { $0.topics is NoTopics }.map(\.label)), tracer: configuration.tracer)
        folder = try DataFolder(locking: configuration.dataPath)
        store = try openStore(NodeService.parts + Self.parts(of: protocols, and: knownParts))
        alarms = Alarms(registry: counters.registry, now: now)
        clock = ClockMonitor(alarms: alarms, logger: logger)
        catchUp = CatchUpMonitor(alarms: alarms)
        cluster = try makeCluster(
            ClusterNeeds(
                store: store, gorushTimeout: gorush.map(\.timeout).max() ?? .seconds(60), replyDelay: configuration.replyDelay,
                waitingLimit: configuration.workLimit, registrants: Self.registrants(of: protocols), counters: counters, logger: logger,
                now: now,
                clockCompared: { [clock] in clock.compared(ahead: $0, of: "the database's") }))
    }

    /// The tables of protocols that the node speaks, and of known ones that it does not speak now.
    private static func parts(of protocols: [any NodeProtocol], and known: [StorePart]) -> [StorePart] {
        let parts = protocols.map(\.part)
        return parts + known.filter { known in !parts.contains { $0.name == known.name } }
    }

    private static func registrants(of protocols: [any NodeProtocol]) -> [ProtocolNumber: (table: Table, column: Column)] {
        Dictionary(uniqueKeysWithValues: protocols.compactMap { spoken in spoken.registrants.map { (spoken.number, $0) } })
    }

    /// Number of topics besides the node's own.
    var topicCount: Int { protocols.reduce(0) { $0 + $1.topics.otherCount } }
    /// The node's own topics, of all protocols.
    var ownTopics: [ContentTopic] { protocols.flatMap(\.topics.own) }
}
