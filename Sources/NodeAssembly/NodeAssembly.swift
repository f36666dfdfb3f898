package import Delivery
package import Logging
package import NodeMetrics
package import PushNode
package import StatusRules
package import StatusServer
package import Storage
package import StoreSQLite
package import Waku
package import WakuCrypto

/// The composition root: the one place that lists the protocols of waku-push.
package enum NodeAssembly {
    /// The tables of the node and of all protocols, enabled or not.
    package static let parts: [StorePart] = NodeService.parts + protocolParts
    fileprivate static let protocolParts: [StorePart] = [StatusStorage.part]

    /// Opens the store in a data folder, and creates it if necessary.
    ///
    /// - Throws: `StoreError`
    package static func store(in folder: String, of identity: PrivateKey) throws(StoreError) -> SQLiteStore {
        try SQLiteStore(folder: folder, storageKey: Sealer.storageKey(of: identity), parts: parts)
    }

    /// Opens the existing store in a data folder, with or without a running daemon.
    ///
    /// - Parameters:
    ///   - folder: a folder with a store.
    ///   - identity: nil if no contents are to be decrypted.
    /// - Throws: `StoreError`
    package static func existingStore(in folder: String, of identity: PrivateKey?) throws(StoreError) -> SQLiteStore {
        try SQLiteStore(existing: folder, storageKey: identity.map(Sealer.storageKey), parts: parts)
    }

    /// Every metric that a node may have.
    package static let metrics: [MetricGroup] = NodeService.metrics(of: [StatusPush(identity: .generate())])
}

/// The configuration of a node and its protocols, except for relay and gorush. The members of ``node`` and ``status`` are available directly.
@dynamicMemberLookup
package struct ServerConfiguration: Sendable {
    package var node: NodeConfiguration
    package var status = StatusPush.Configuration()

    package init(identity: PrivateKey, dataPath: String) {
        node = NodeConfiguration(identity: identity, dataPath: dataPath)
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
    private let status: StatusPush

    /// Opens the data folder and creates the parts. Nothing runs yet.
    ///
    /// - Parameters:
    ///   - configuration: the configuration of the node and its protocols.
    ///   - gorush: the endpoints, at least one.
    ///   - logger: the node's logger.
    ///   - now: the system's clock.
    ///   - makeRelay: creates the relay.
    /// - Throws: `StoreError`, and errors of `makeRelay`.
    package init(
        _ configuration: ServerConfiguration, gorush: [GorushEndpoint], logger: Logger,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        var settings = configuration.status
        settings.requestAgeLimit = configuration.node.maximumRequestAge
        status = StatusPush(identity: configuration.node.identity, settings)
        node = try NodeService(
            configuration.node, protocols: [status], knownParts: NodeAssembly.protocolParts, gorush: gorush, logger: logger, now: now,
            makeRelay: makeRelay)
    }

    /// Creates a server with a single gorush.
    package init(
        _ configuration: ServerConfiguration, gorush: any NotificationPosting, logger: Logger,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        try self.init(configuration, gorush: [GorushEndpoint(gorush)], logger: logger, now: now, makeRelay: makeRelay)
    }

    /// Replaces the limits, and the keys that may register.
    package func replaceLimits(_ limits: Limits) {
        status.replaceLimits(limits)
    }
}
