package import NodeAPI
package import Cluster
package import Delivery
package import Logging
package import NodeMetrics
package import PushNode
package import SessionServer
package import RateLimits
package import StatusServer
package import StatusV01Server
package import Storage
import StorePostgreSQL
package import StoreSQLite
package import Core
package import Waku
package import WakuCrypto

/// The composition root: the one place that lists the protocols of waku-push.
package enum NodeAssembly {
    /// The tables of the node and of all protocols, enabled or not.
    package static var parts: [StorePart] { NodeService.parts + protocols.map(\.part) }
    /// The protocols that the program knows, enabled or not.
    package static var protocols: [ProtocolDescription] { [.status, .statusV01, .session] + added }
    /// Protocols of other packages, which the nodes of this program speak too: see `WakuPushProgram.run(adding:name:)`.
    @TaskLocal package static var added: [ProtocolDescription] = []
    /// The options that they declare.
    package static var addedOptions: [ProtocolOptionForm] { added.flatMap(\.options).map(\.form) }

    /// Opens the existing store in a data folder, with or without a running daemon.
    ///
    /// - Parameters:
    ///   - identity: nil if no contents are to be decrypted.
    ///   - mayBeOlder: whether to open a database of an older version, too: for a backup.
    package static func existingStore(
        in folder: String, of identity: PrivateKey?, mayBeOlder: Bool = false
    ) throws(StoreError) -> SQLiteStore {
        try SQLiteStore(existing: folder, storageKey: identity.map(Sealer.storageKey), parts: parts, mayBeOlder: mayBeOlder)
    }

    /// Opens the store of a node that does not run, and creates it if necessary.
    ///
    /// - Parameter folder: the data folder, locked by the caller.
    package static func store(
        at location: StoreLocation = .dataFolder, in folder: String, of identity: PrivateKey
    ) throws(StoreError) -> any Store {
        try location.open(in: folder, storageKey: Sealer.storageKey(of: identity), parts: parts)
    }

    /// Opens the existing store of a node, with or without a running daemon.
    ///
    /// - Parameter identity: nil if no contents are to be decrypted.
    package static func existingStore(
        at location: StoreLocation, in folder: String, of identity: PrivateKey?
    ) throws(StoreError) -> any Store {
        switch location {
        case .dataFolder: try existingStore(in: folder, of: identity)
        case .postgreSQL(let address):
            try PostgreSQLStore(existing: address, storageKey: identity.map(Sealer.storageKey), parts: parts)
        }
    }

    /// Every metric that a node may have.
    package static var metrics: [MetricGroup] { NodeService.metrics(of: []) + protocols.flatMap(\.metrics) }

    /// The operator's name for the protocol with this number in stored rows: the number if the program does not know it.
    package static func protocolName(of number: ProtocolNumber) -> String {
        protocols.first { $0.number == number }?.name ?? String(number.rawValue)
    }

    /// Numbers of the protocols' stored rows, for `admin status`.
    package static func storedCounts(in store: any Store) throws(StoreError) -> [StoredCount] {
        var counts: [StoredCount] = []
        for known in protocols { counts += try known.storedCounts(store) }
        return counts
    }

    /// The owners of those devices that are registered, with any protocol.
    package static func owners(of devices: [DeviceID], in store: any Store) throws(StoreError) -> [DeviceID: DeviceOwner] {
        try store.read(deliverySources(of: store).owners(of: devices))
    }

    /// The protocols' lookups that delivery needs, without a running node.
    package static func deliverySources(of store: any Store) -> DeliverySources {
        DeliverySources(protocols.map { $0.makeDeliverySource(store.sealer) })
    }
}

/// The configuration of a node and its protocols, except for relay and gorush. The members of ``node`` and ``status`` are available directly.
@dynamicMemberLookup
package struct ServerConfiguration: Sendable {
    package var node: NodeConfiguration
    package var store = StoreLocation.dataFolder
    /// Set for one of several nodes with the same identity, on a PostgreSQL database.
    package var cluster: ClusterNode.Configuration?
    package var status = StatusPush.Configuration()
    /// nil: the node does not speak version 0.1. Limits, ages and lifetimes are those of ``status``.
    package var statusV01: StatusPushV01.Configuration?
    /// nil: the node is not Session's push server. Limits and ages are those of ``status``.
    package var session: SessionPush.Configuration?
    /// The texts of ``NodeAssembly/addedOptions`` by name; defaults apply to missing ones.
    package var addedOptions: [String: String] = [:]

    package init(identity: PrivateKey, dataPath: String) {
        node = NodeConfiguration(identity: identity, dataPath: dataPath)
    }

    /// The limits of each protocol.
    package var limits: Limits {
        get { status.limits }
        set { status.limits = newValue }
    }

    package subscript<Value>(dynamicMember path: WritableKeyPath<NodeConfiguration, Value>) -> Value {
        get { node[keyPath: path] }
        set { node[keyPath: path] = newValue }
    }

    package subscript<Value>(dynamicMember path: WritableKeyPath<StatusPush.Configuration, Value>) -> Value {
        get { status[keyPath: path] }
        set { status[keyPath: path] = newValue }
    }
}

/// A node with the protocols of a configuration.
package struct Server: Sendable {
    package let node: NodeService
    private let protocols: [any NodeProtocol]
    private let added: [ProtocolDescription]
    private let addedOptions: ProtocolOptionValues
    private let addedLimits: [ProtocolNumber: RegistrationLimits]

    /// Opens the data folder and creates the parts. Nothing runs yet.
    ///
    /// - Parameters:
    ///   - configuration: the configuration of the node and its protocols.
    ///   - gorush: the endpoints, at least one.
    /// - Throws: `StoreError`, `Limits.Problem`, and errors of `makeRelay`.
    package init(
        _ configuration: ServerConfiguration, gorush: [GorushEndpoint], logger: Logger,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        var settings = configuration.status
        settings.requestAgeLimit = configuration.node.maximumRequestAge
        let status = StatusPush(identity: configuration.node.identity, settings)
        let statusV01 = configuration.statusV01.map { own in
            var own = own
            own.requestAgeLimit = settings.requestAgeLimit
            own.limits = settings.limits
            own.otherIdentities = settings.otherIdentities
            own.registrationLifetime = settings.registrationLifetime
            return StatusPushV01(identity: configuration.node.identity, own)
        }
        let session = configuration.session.map { own in
            var own = own
            own.ageLimit = settings.requestAgeLimit
            own.limits = settings.limits
            return SessionPush(own)
        }
        added = NodeAssembly.added
        addedOptions = ProtocolOptionValues(configuration.addedOptions)
        let context = ProtocolContext(
            identities: [configuration.node.identity] + settings.otherIdentities, maximumMessageAge: settings.requestAgeLimit,
            options: addedOptions)
        let spoken = try added.compactMap { description in try description.makeProtocol?(context) }
        let payers = PayerHasher(key: configuration.node.identity.derivedKey(purpose: "waku-push payers 1"))
        addedLimits = Dictionary(
            uniqueKeysWithValues: try spoken.compactMap { spoken in
                try type(of: spoken).description.limits(settings.limits, options: configuration.addedOptions).map { limits in
                    (spoken.number, RegistrationLimits(limits, of: spoken.label, payers: payers))
                }
            })
        var cluster = configuration.cluster
        cluster?.settings = settings.sharedSettings(of: configuration.node.identity, gorushTimeout: gorush.map(\.timeout).max())
            .merging(Self.sharedSettings(of: configuration.addedOptions)) { $1 }
            .merging(configuration.sharedEndpoints(gorush.map(\.rule))) { $1 }
        let others: [(any NodeProtocol)?] = [statusV01, session]
        protocols = [status] + others.compactMap(\.self) + spoken
        node = try NodeService(
            configuration.node, at: configuration.store, in: cluster, protocols: protocols, limits: addedLimits,
            knownParts: NodeAssembly.protocols.map(\.part), gorush: gorush, logger: logger, now: now, makeRelay: makeRelay)
    }

    /// Creates a server with a single gorush.
    package init(
        _ configuration: ServerConfiguration, gorush: any NotificationPosting, logger: Logger,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        try self.init(configuration, gorush: [GorushEndpoint(gorush)], logger: logger, now: now, makeRelay: makeRelay)
    }

    /// Replaces the limits, the keys that may register, and the reloadable ones of ``ServerConfiguration/addedOptions``.
    ///
    /// - Parameters:
    ///   - limits: the limits.
    ///   - gorushTimeouts: the timeouts of posts, by endpoint; empty if they stay.
    ///   - values: the valid texts of all options.
    package func replaceLimits(_ limits: Limits, gorushTimeouts: [Duration] = [], addedOptions values: [String: String] = [:]) {
        for case let known as any ReloadsLimits in protocols { known.replaceLimits(limits) }
        for description in added {
            if let limits = try? description.limits(limits, options: values) { addedLimits[description.number]?.replace(limits) }
        }
        let reloaded = added.flatMap(\.options).map(\.form).filter(\.isReloadable).map(\.name)
        addedOptions.replace(reloaded, from: values)
        var shared = Self.sharedSettings(of: values.filter { reloaded.contains($0.key) })
        if let longest = gorushTimeouts.max() {
            node.replaceGorushTimeouts(gorushTimeouts)
            shared.merge(SharedSettings.gorushTimeout(longest)) { $1 }
        }
        node.cluster.replaceSettings(limits.sharedSettings.merging(shared) { $1 })
    }

    private static func sharedSettings(of options: [String: String]) -> [String: String] {
        Dictionary(uniqueKeysWithValues: options.map { ("--" + $0.key, $0.value) })
    }

    /// The port of Session's HTTP endpoints once they are listened on; nil when the node is not Session's push server.
    package var sessionPort: Int? { node.httpPort(of: SessionStorage.protocolNumber) }
}
