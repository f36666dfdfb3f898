import PushNode
import CurlClient
import Foundation
import HTTPService
import Delivery
import NodeAPI
import LibP2P
import Logging
import NodeAssembly
import NwakuRelay
import StatusServer
import Storage
import StorePostgreSQL
import StoreSQLite
import StatusProtocol
import Core
import Waku
import WakuCrypto

/// Gathers the facts for `NodeChecks`. Settings without an option come from the daemon, if one runs on the data folder.
struct DoctorExamination {
    private static let selfTestLimit = Duration.seconds(5)
    /// For each answer of PostgreSQL, to a commit too.
    private static let databaseLimit = Duration.seconds(5)

    let options: Serve
    /// A file with a Web Push subscription to test.
    let testPush: String?
    private let client = CurlClient()

    /// - Throws: ``CommandFailure`` for options that serve would reject.
    func facts() async throws -> DoctorFacts {
        let daemon = try await daemon()
        let setup: AdminAPI.Setup? = daemon == nil ? nil : try await AdminClient(folder: options.data).get("/setup")
        var topics = try options.topics().map(\.rawValue)
        if let setup, !ServeOption.isGiven("pubsub-topic") { topics = setup.pubsubTopics }
        var (relayNames, fleets) = (options.relay, options.network.fleet)
        var hasRelay = options.hasRelay
        if let setup, !ServeOption.isGiven("relay", "fleet") {
            (relayNames, fleets, hasRelay) = (setup.relays, setup.fleets, setup.hasRelay ?? true)
        }
        let (identity, keyProblem) = identity(setup)
        let database = try database(identity, setup)
        let nodes = try relayNames.filter { $0 != "loopback" && !$0.hasPrefix("/") }.map { try NodeAddress($0) }
        var relays: [DoctorFacts.Relay] = []
        for node in nodes { relays.append(await look(at: node, topics)) }
        relays += try await peers(relayNames, fleets: fleets, ofDaemon: daemon != nil)
        if relayNames.contains("loopback") || relays.isEmpty { relays.append(hasRelay ? .loopback : .none) }
        var unreadable: [Finding] = []
        /// A file that can't be read does not keep doctor from the other checks: those of the package exist only while the service runs.
        func readable<R>(_ standard: R, _ read: () async throws -> R) async throws -> R {
            do {
                return try await read()
            } catch let failure as CommandFailure {
                unreadable.append(Finding("configuration", .fail, failure.message))
                return standard
            }
        }
        let takesFeedback = try await readable(true) { try options.gorush.feedbackSecret() != nil }
        let gorushes = try await readable([]) { try await self.gorushes(setup) }
        var facts = DoctorFacts(
            keyProblem: keyProblem, folder: folder(), space: DiskSpace(at: nearestFolder),
            files: daemon == nil ? OpenFiles.now() : nil,
            database: database, daemon: daemon, pubsubTopics: topics, relays: relays,
            selfTest: await selfTest(daemon, identity: identity, nodes: nodes, topics: topics), gorushes: gorushes,
            takesFeedback: ServeOption.isGiven("feedback-secret-file") ? takesFeedback : setup?.takesFeedback ?? takesFeedback)
        facts.hasDatabaseInDataFolder = try location(setup) == .dataFolder
        // Each attempt to connect to a database that does not answer takes its time limit.
        let store = database.isUsable ? existingStore(setup) : nil
        let routing = daemon == nil ? try? routing() : nil
        let examination = ProtocolExamination(
            daemon: setup?.protocols, daemonFindings: daemon?.findings ?? [], daemonFacts: daemon?.protocols?.flatMap(\.facts) ?? [],
            store: store, routing: routing)
        facts.webPush = try await webPush(isDaemonRunning: daemon != nil)
        for protocolOptions in options.protocols.all { facts.protocols += await protocolOptions.findings(examination) }
        if daemon == nil { facts.obstacles = try await obstacles(database) }
        facts.obstacles += unreadable.filter { finding in !facts.obstacles.contains { $0.text == finding.text } }
        facts.unserved = unserved(store, routing) + (daemon?.findings.filter { $0.check == NodeChecks.devicesCheck } ?? [])
        return facts
    }

    /// - Throws: ``CommandFailure`` for options that are a finding of their own.
    private func routing() throws(CommandFailure) -> EndpointRouting {
        let rules = try options.gorush.settings().map(\.rule)
        return EndpointRouting(rules.isEmpty ? [GorushEndpoint.none.rule] : rules, webPushKeys: try options.webPush.endpoint()?.keys ?? [])
    }

    /// What serve would refuse, by its own checks; a daemon that runs has passed them.
    private func obstacles(_ database: DoctorFacts.Database) async throws -> [Finding] {
        var found: [Finding] = []
        do {
            _ = try options.plan()
        } catch let invalid as InvalidConfiguration {
            found += invalid.failures.map { Finding("configuration", .fail, $0.message) }
        }
        let session = (try? options.session.address()).flatMap { $0 }.map { [(option: "session-http", address: $0)] } ?? []
        for (option, address) in options.listeners + session {
            guard let reason = await HTTPListener.obstacle(host: address.host, port: address.port) else { continue }
            found.append(Finding(option, .fail, "can't listen on \(address): \(reason)", remedy: "choose another with --\(option)"))
        }
        // The default address is not needed: serve warns, and runs without it.
        let peers = options.peers.listen.isEmpty ? [] : try? options.peers.addresses(hasLoopback: false)
        for address in peers ?? [] {
            guard let endpoint = address.endpoint, case .address(let bytes) = endpoint.host,
                let reason = await HTTPListener.obstacle(host: IPAddress.text(of: bytes), port: Int(endpoint.port))
            else { continue }
            found.append(
                Finding("listen", .fail, "can't listen on \(address): \(reason)", remedy: "choose another with --listen, or --listen off"))
        }
        if database.isUsable, case .postgreSQL(let address) = try location(nil) {
            do throws(StoreError) {
                try CommitTest.lock(at: address, isShared: Settings.cluster.value(options.cluster) != nil)
            } catch {
                // Others are findings on the database.
                if error.code == .locked { found.append(Finding("database", .fail, error.message)) }
            }
        }
        return found
    }

    /// Devices of Status and of added protocols without an endpoint; nothing if a daemon runs.
    private func unserved(_ store: (any Store)?, _ routing: EndpointRouting?) -> [Finding] {
        guard let store, let routing else { return [] }
        var devices = [("Status", try? store.read(Registrations.figures()).devices)]
        for added in NodeAssembly.added {
            devices.append((added.name, added.registrations.flatMap { try? store.read($0.figures()) }))
        }
        return devices.compactMap { name, figures in
            figures.flatMap { NodeChecks.unserved(name, $0.registered, serves: routing.serves) }
        }
    }

    /// nil when there is none, or it can't be read.
    private func existingStore(_ setup: AdminAPI.Setup?) -> (any Store)? {
        guard let location = try? location(setup) else { return nil }
        return try? NodeAssembly.existingStore(at: location, in: options.data, of: nil)
    }

    private func location(_ setup: AdminAPI.Setup?) throws(StoreError) -> StoreLocation {
        let location = try StoreLocation(option: ServeOption.isGiven("store") ? options.store : setup?.store)
        guard case .postgreSQL(var address) = location else { return location }
        (address.silenceLimit, address.longestSilence) = (Self.databaseLimit, .zero)
        return .postgreSQL(address)
    }

    // MARK: This machine

    private func identity(_ setup: AdminAPI.Setup?) -> (PrivateKey?, String?) {
        // The daemon could read its key file, even if this user can't.
        if !ServeOption.isGiven("identity"), let path = setup?.identityPath { return (try? IdentityFile.read(path), nil) }
        guard let path = options.identity.first else {
            return (nil, "--identity is missing: make a key with waku-push identity new --out id.key")
        }
        do throws(CommandFailure) {
            return (try IdentityFile.read(path), nil)
        } catch {
            return (nil, error.message)
        }
    }

    private func daemon() async throws(CommandFailure) -> NodeStatus? {
        // A missing folder, or one of another user, is a separate finding.
        guard access(options.data, X_OK) == 0 else { return nil }
        return try await AdminClient(folder: options.data).status()
    }

    private var nearestFolder: String { Serve.nearestFolder(to: options.data) }

    private func folder() -> DoctorFacts.Folder {
        let path = URL(fileURLWithPath: options.data).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return DoctorFacts.Folder(
            exists: attributes != nil, isOwned: getuid() == 0 || attributes?[.ownerAccountID] as? UInt32 == getuid(),
            isWritable: access(nearestFolder, W_OK | X_OK) == 0, mode: attributes?[.posixPermissions] as? Int ?? 0o700,
            isReadOnly: DataFolder.isReadOnly(nearestFolder))
    }

    private func database(_ identity: PrivateKey?, _ setup: AdminAPI.Setup?) throws(StoreError) -> DoctorFacts.Database {
        let path = DataFolder.databasePath(in: options.data)
        let key = identity.map(Sealer.storageKey)
        if case .postgreSQL(let address) = try location(setup) { return database(at: address, key) }
        do throws(StoreError) {
            guard try DatabaseFile.exists(at: path) else {
                return DatabaseFile.isRescued(path) ? .unusable(StoreError(noDatabaseAt: path).message) : .missing
            }
            let inspection = try StoreInspection(of: path, storageKey: key, parts: NodeAssembly.parts, isThorough: false)
            return try inspected(inspection, in: try NodeAssembly.existingStore(in: options.data, of: identity))
        } catch {
            return .unusable(error.message)
        }
    }

    private func database(at address: PostgreSQLAddress, _ key: SymmetricKey?) -> DoctorFacts.Database {
        do throws(StoreError) {
            let store = try PostgreSQLStore(existing: address, storageKey: key, parts: NodeAssembly.parts)
            let commitTime = try CommitTest.run(at: address, within: Self.databaseLimit)
            let inspection = try store.inspect(isUnsealing: key != nil, limit: StoreInspection.sampleSize)
            return try inspected(inspection, in: store, commitTime: commitTime)
        } catch {
            guard error.code == .missing else { return .unusable(error.message) }
            do throws(StoreError) {
                try CommitTest.creation(at: address)
                return .missing
            } catch {
                return .unusable(error.message)
            }
        }
    }

    /// A store that was moved away, or into which a move was interrupted, is not used by serve.
    private func inspected(
        _ inspection: StoreInspection, in store: any Store, commitTime: Duration? = nil
    ) throws(StoreError) -> DoctorFacts.Database {
        if let obstacle = try store.read(StoreTransfer.obstacle()) { return .unusable(obstacle) }
        return .inspected(
            inspection, try store.read(Registrations.statistics()), ofProtocols: try NodeAssembly.storedCounts(in: store),
            commitTime: commitTime)
    }

    // MARK: The relay

    private func look(at address: NodeAddress, _ topics: [String]) async -> DoctorFacts.Relay {
        do throws(NwakuAPIError) {
            let shards = topics.compactMap { RelayShard($0) }.map { Int($0.shard) }
            let found = try await NwakuAPI(address: address, client: client).inspect(shards: shards)
            return .node(address: address.description, found)
        } catch {
            return .unreachable(address: address.description, reason: error.message)
        }
    }

    /// Nodes attached over libp2p: only the daemon is connected to them.
    private func peers(_ relayNames: [String], fleets: [String], ofDaemon isRunning: Bool) async throws -> [DoctorFacts.Relay] {
        let addresses = try relayNames.filter { $0.hasPrefix("/") }.map { (text: $0, id: try RelayTargets.peer($0).peerID) }
        _ = try options.network.nodeLists()
        guard !addresses.isEmpty || !fleets.isEmpty else { return [] }
        var found: [RelayPeer]?
        if isRunning {
            let answer: AdminAPI.Peers = try await AdminClient(folder: options.data).get("/peers")
            found = answer.peers
        }
        let listed = Set(addresses.compactMap { $0.id?.description })
        return addresses.map { address in
            .peer(
                address: address.text,
                found.map { peers in
                    guard let peer = peers.first(where: { $0.id == address.id?.description }) else { return .missing }
                    return peer.isFilterNode ? .filterNode : .connected(meshCount: peer.meshes.count)
                })
        }
            + fleets.map { name in
                .fleet(
                    name: name,
                    workingPeerCount: found.map { $0.count { peer in !peer.isInbound && peer.isWorking && !listed.contains(peer.id) } })
            }
    }

    private func selfTest(
        _ daemon: NodeStatus?, identity: PrivateKey?, nodes: [NodeAddress], topics: [String]
    ) async -> DoctorFacts.SelfTest {
        if daemon != nil { return await selfTestByDaemon() }
        guard let identity else { return .notDone("there is no key") }
        guard let node = nodes.first else { return .notDone("there is no Waku node, and no daemon") }
        return await selfTestByStore(node, identity: identity, topic: PubsubTopic(rawValue: topics[0]))
    }

    /// Done by the daemon: only one program may poll the relay.
    private func selfTestByDaemon() async -> DoctorFacts.SelfTest {
        let how = "by the running daemon"
        do throws(CommandFailure) {
            let test: AdminAPI.SelfTest = try await AdminClient(folder: options.data).post(
                "/self-test", [String](), timeout: AdminClient.workLimit)
            if let problem = test.problem { return .notPublished(problem) }
            return test.milliseconds.map { .seen(milliseconds: $0, how: how) } ?? .notSeen(how: how)
        } catch {
            return .notDone(error.message)
        }
    }

    /// Looks the message up in the store: polling would take messages away from the daemon that starts later.
    private func selfTestByStore(_ node: NodeAddress, identity: PrivateKey, topic: PubsubTopic) async -> DoctorFacts.SelfTest {
        let how = "in the Waku node's store: no daemon runs, and polling would take messages from it"
        let logger = Logger(label: "doctor") { _ in SwiftLogNoOpLogHandler() }
        let message = WakuMessage(
            payload: randomBytes(64), contentTopic: ContentTopic(TopicTag(of: StatusTopics.partitioned(identity.publicKey))),
            timestamp: .now())
        let start = ContinuousClock.now
        do {
            let relay = try NwakuRESTRelay(
                configuration: NwakuRESTRelay.Configuration(address: node, pubsubTopics: [topic]), client: client, logger: logger)
            try await relay.publish(message, on: topic)
            while start.duration(to: .now) < Self.selfTestLimit {
                if try await !relay.lookUp([message.hash(on: topic)]).isEmpty {
                    return .seen(milliseconds: Int(start.duration(to: .now).nanoseconds / 1_000_000), how: how)
                }
                try await Task.sleep(for: .milliseconds(100))
            }
            return .notSeen(how: how)
        } catch let error as RelayError where error.code == .refused {
            return .notDone(error.message)
        } catch {
            return .notPublished("\(error)")
        }
    }

    // MARK: Web Push

    /// The options are checked if they are given. The daemon's own are among its findings.
    private func webPush(isDaemonRunning: Bool) async throws -> [Finding] {
        let subscription = try testPush.map { try PushSubscription(file: $0) }
        guard options.webPush.webPush else {
            guard let subscription else { return [] }
            guard isDaemonRunning else { throw CommandFailure(.usage, "--test-push needs a running daemon, or --web-push and its options") }
            let test = AdminAPI.WebPushTest(subscription: String(decoding: subscription.json, as: UTF8.self))
            let tested: AdminAPI.WebPushTested = try await AdminClient(folder: options.data).post(
                "/web-push/test", test, timeout: AdminClient.workLimit)
            return [NodeChecks.webPushTest(tested)]
        }
        let endpoint: WebPushEndpoint?
        do throws(CommandFailure) {
            endpoint = try options.webPush.endpoint()
        } catch {
            return [NodeChecks.webPushSettings(problem: error.message)]
        }
        guard let endpoint else { return [] }
        var findings = [NodeChecks.webPushSettings(key: endpoint.publicKey, contact: try options.webPush.checkedContact())]
        if let subscription {
            let reply = await endpoint.posting.post(.test(of: subscription, at: .now()))
            findings.append(NodeChecks.webPushTest(AdminAPI.WebPushTested(reply)))
        }
        return findings
    }

    // MARK: gorush

    /// gorush is inspected by the daemon, since its credentials can't be read from outside, unless options give another server or other
    /// credentials.
    private func gorushes(_ setup: AdminAPI.Setup?) async throws -> [AdminAPI.InspectedGorush] {
        let isServerGiven = ServeOption.isGiven("gorush") || Environment.file?.endpoints.isEmpty == false
        let areCredentialsGiven = ServeOption.isGiven(
            "gorush-ca", "gorush-user", "gorush-password-file", "gorush-token-file", "gorush-header")
        guard let setup, !isServerGiven else { return try await inspect(try options.gorush.settings()) }
        guard areCredentialsGiven else {
            return try await AdminClient(folder: options.data).post(
                "/gorush/inspect", [String](), timeout: AdminClient.workLimit)
        }
        let given = try options.gorush.settings()
        return try await inspect(
            setup.gorush.flatMap { endpoint in
                given.map { settings in
                    var settings = settings
                    (settings.url, settings.rule) = (endpoint.url, endpoint.rule)
                    return settings
                }
            })
    }

    private func inspect(_ servers: [GorushSettings]) async throws -> [AdminAPI.InspectedGorush] {
        var found: [AdminAPI.InspectedGorush] = []
        for settings in servers { found.append(try await settings.inspect()) }
        return found
    }
}
