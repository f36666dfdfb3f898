import Cluster
import NodeAPI
import NodeMetrics
import PushNode
import ArgumentParser
import Delivery
import Foundation
import Logging
import NodeAssembly
import ServiceLifecycle
import StatusServer
import Storage
import UnixSignals
import Core
import StorePostgreSQL
import Waku
import WakuCrypto

struct Serve: ReportingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs the node until SIGTERM or SIGINT; it then finishes its work in progress and exits within 10 s.",
        discussion: """
            EXAMPLES
              waku-push serve --identity id.key --data data
                on the loopback relay, at 127.0.0.1:8645
              waku-push serve --identity id.key --data /var/lib/waku-push \\
                --relay http://10.0.0.5:8645 --relay http://10.0.0.6:8645 \\
                --gorush https://gorush.example --gorush-token-file gorush.token
              waku-push serve --identity id.key --data /var/lib/waku-push \\
                --store postgresql://waku@db/waku --cluster node-1 \\
                --relay http://10.0.0.5:8645 --gorush https://gorush.example
              waku-push serve --identity id.key --data /var/lib/waku-push \\
                --relay /dns4/node.example/tcp/60000/p2p/16Uiu2HA… \\
                --listen /ip4/0.0.0.0/tcp/60000 --gorush https://gorush.example

            HTTP
              GET /          the status page; /status.json for programs
              GET /metrics   for Prometheus
              GET /healthz   200 while the process answers
              GET /readyz    200 while the node works; else 503 and the reasons:
                             relay, silence, store, lease, clock, gorush, disk,
                             open files, a drain, or Session's servers
              POST /feedback gorush's feedback_hook_url, with the secret of
                             --feedback-secret-file in X-Waku-Push-Secret
              POST /search   the status page's search for a message or device
              GET /web-push  the key for Web Push subscriptions
            """)

    @Option(Settings.identity) var identity: [String]
    @Option(Settings.data) var data: String
    @Option(Settings.store) var store: String?
    @Option(Settings.cluster) var cluster: String?
    @Option(Settings.relay) var relay: [String]
    @Option(Settings.loopbackListen) var loopbackListen: AddressArgument

    @OptionGroup(title: "libp2p")
    var peers: PeerOptions

    // Groups are not nested: in debug builds ArgumentParser's checks take five times as long for each level.
    @OptionGroup(title: "libp2p")
    var network: NetworkOptions

    @Option(Settings.pubsubTopic) var pubsubTopic: [String]
    @Option(Settings.pollInterval) var pollInterval: DurationArgument

    @OptionGroup(title: "Gorush")
    var gorush: GorushOptions

    @OptionGroup(title: "Web Push")
    var webPush: WebPushOptions

    @Option(Settings.maxRequestAge) var maxRequestAge: DurationArgument
    @Option(Settings.replyDelay) var replyDelay: OptionalDurationArgument
    @Option(Settings.deriveAhead) var deriveAhead: SwitchArgument
    @Option(Settings.deriveAheadLimit) var deriveAheadLimit: Int
    @Option(Settings.outboxLimit) var outboxLimit: Int
    @Option(Settings.unknownHold) var unknownHold: OptionalDurationArgument
    @Option(Settings.silenceAlarm) var silenceAlarm: SilenceArgument
    @Flag(Settings.idempotentRegistrations) var idempotentRegistrations: Bool

    @OptionGroup
    var statusV01: StatusV01Options

    @OptionGroup(title: "Session")
    var session: SessionOptions

    @Option(Settings.http) var http: AddressArgument
    @Option(Settings.httpHost) var httpHost: [String]
    @Option(Settings.documentation) var documentation: String?
    @Option(Settings.logLevel) var logLevel: Logger.Level
    @Option(Settings.logFormat) var logFormat: LogFormat

    @OptionGroup(title: "Traces")
    var traces: TraceOptions

    @OptionGroup(title: "Limits")
    var limits: LimitOptions

    @OptionGroup(title: AddedOptions.title)
    var added: AddedOptions

    @Option(Settings.config) var config: String?

    /// The only list of the protocols' options among the commands.
    var protocols: ProtocolOptions { ProtocolOptions(all: [statusV01, session]) }

    /// The validated configuration. Reading it opens no port, database or connection.
    struct Plan: Sendable {
        var configuration: ServerConfiguration
        var gorush: [GorushSettings]
        /// Settings for all gorush servers.
        let notifications: NotificationSettings
        let level: Logger.Level
        /// nil when nothing is traced.
        let traces: TraceOptions.Plan?
        /// The effective values of all options.
        let values: [ServeOption.Value]
        let contents: FileContents
    }

    /// Checks everything, so that all errors are reported at once.
    ///
    /// - Throws: ``InvalidConfiguration``
    func plan() throws -> Plan {
        let failures = ConfigurationFailures(Environment.problems)
        let keys = identities(failures)
        // With a failure the configuration is not used: the checks go on with any key.
        var configuration = ServerConfiguration(identity: keys.first ?? .generate(), dataPath: data)
        configuration.otherIdentities = Array(keys.dropFirst())
        failures.check("data") { try DataFolder.check(data) }
        if let store = failures.check("store", body: { try StoreLocation(option: store) }) {
            configuration.store = store
            if case .postgreSQL(let address) = store { failures.check("store") { try address.requireAccepted() } }
            configuration.cluster = failures.check("cluster") { try clusterMember(on: store) } ?? nil
        }
        failures.checkEach("pubsub-topic", pubsubTopic) { try Self.checkTopic($0) }
        configuration.pubsubTopics = failures.check { try topics() } ?? []
        configuration.maximumRequestAge = maxRequestAge.duration
        configuration.idempotentRegistrations = idempotentRegistrations
        configuration.httpAddress = http.address
        failures.checkEach("http-host", httpHost) { try Self.checkHost($0) }
        configuration.httpHosts = httpHost
        configuration.documentation = failures.check("documentation") { try documentationAddress() } ?? nil
        configuration.servesAdmin = true
        configuration.version = Version.current
        configuration.hasRelay = hasRelay
        configuration.silenceAlarm = silenceAlarm.limit(isAlone: relay.allSatisfy { $0 == "loopback" } && network.fleet.isEmpty)
        configuration.outboxLimit = outboxLimit
        configuration.unknownHold = unknownHold.duration ?? .zero
        configuration.replyDelay = replyDelay.duration ?? .zero
        configuration.deriveAheadLimit = deriveAhead == .on ? deriveAheadLimit : nil
        checkRanges(of: configuration, failures)
        configuration.limits = limits.limits(failures)
        protocols.apply(to: &configuration, failures)
        configuration.addedOptions = addedOptions(failures)
        configuration.registrationLifetime = limits.registrationLifetime.duration
        configuration.feedbackSecret = failures.check("feedback-secret-file") { try gorush.feedbackSecret() } ?? nil
        webPush.check(failures)
        configuration.webPush = failures.check { try webPush.endpoint() } ?? nil
        var settings = gorush.settings(failures)
        for index in settings.indices { settings[index].ids = NotificationIDCipher(identity: configuration.identity) }
        for settings in settings { settings.check(failures) }
        checkDevices(failures)
        checkRelays(failures)
        let relays = failures.check {
            try attachment(of: configuration.identity, logger: Logger(label: "configuration") { _ in SwiftLogNoOpLogHandler() })
        }
        let nodeKey = peers.keyFile(in: data)
        if relays?.usesNodeKey == true, !keys.isEmpty, FileManager.default.fileExists(atPath: nodeKey) {
            failures.check("node-key") { _ = try NodeKeyFile.readOrCreate(nodeKey, besides: keys[0]) }
        }
        failures.check("dns") { try network.dnsClient() }
        let traces = traces.plan(failures)
        configuration.tracer = traces.map { MessageTracer($0.sampling) }
        try failures.finish()
        let notifications = try gorush.notifications()
        configuration.webPush?.settings = notifications
        let values = ServeOption.all.map { $0.value(Invocation.current.arguments) }
        return Plan(
            configuration: configuration, gorush: settings, notifications: notifications, level: logLevel, traces: traces,
            values: values, contents: FileContents(values: values, gorush: settings))
    }

    /// The keys of the node's identities, the one to which the database belongs first.
    private func identities(_ failures: ConfigurationFailures) -> [PrivateKey] {
        failures.check("identity") {
            guard !identity.isEmpty else {
                throw CommandFailure(.usage, "--identity is missing: make a key with waku-push identity new --out id.key")
            }
            guard identity.count <= IdentityLabel.allCases.count else {
                throw CommandFailure(
                    .usage, "--identity is given \(identity.count) times: at most \(IdentityLabel.allCases.count) are served")
            }
        }
        var keys: [PrivateKey] = []
        failures.checkEach("identity", identity) { path in
            let key = try IdentityFile.read(path)
            guard !keys.contains(where: { $0.publicKey == key.publicKey }) else {
                throw CommandFailure(.usage, "--identity \(path) has the same key as another one: give each key once")
            }
            keys.append(key)
        }
        return keys
    }

    private func clusterMember(on store: StoreLocation) throws -> ClusterNode.Configuration? {
        guard let name = Settings.cluster.value(cluster) else { return nil }
        guard case .postgreSQL = store else {
            throw CommandFailure(.usage, "--cluster needs a PostgreSQL database: give --store postgresql://…")
        }
        guard (1...100).contains(name.utf8.count), name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) })
        else { throw CommandFailure(.usage, "--cluster must be a name of at most 100 letters, digits, dots, hyphens and underscores") }
        var member = ClusterNode.Configuration(name: name)
        member.version = Version.current
        return member
    }

    /// Without `--relay` the node uses the loopback relay, or none if a protocol is on that needs none and no option of the loopback relay is given.
    var hasRelay: Bool {
        let asksForLoopback = !peers.listen.allSatisfy { $0 == "off" } || ServeOption.isGiven("loopback-listen")
        return !protocols.areServedWithoutRelay || !relay.isEmpty || !network.fleet.isEmpty || asksForLoopback
    }

    /// Does not listen or dial yet.
    private func attachment(of identity: PrivateKey, logger: Logger) throws -> RelayAttachment {
        try RelayAttachment(
            hasRelay ? relay : nil, network: network, peers: peers, loopbackAddress: loopbackListen.address, loopbackNames: httpHost,
            pollInterval: pollInterval.duration,
            logger: logger
        ) { [peers, data] () throws(CommandFailure) in
            try NodeKeyFile.readOrCreate(peers.keyFile(in: data), besides: identity)
        }
    }

    /// Reads the files and the environment again, with the same command line.
    static func reloadedPlan() throws -> Plan {
        let arguments = Invocation.current.arguments
        try ConfigurationFile.load(arguments)
        guard let serve = try WakuPush.parseAsRoot(Array(arguments.dropFirst())) as? Serve else {
            throw CommandFailure(.usage, "expected the serve command")
        }
        return try serve.plan()
    }

    static let checksOptions = false

    func execute() async throws {
        // Writing over the file size limit or to a closed connection must return an error instead of ending the process.
        signal(SIGXFSZ, SIG_IGN)
        signal(SIGPIPE, SIG_IGN)
        // SIGHUP would end the process before ReloadService handles it.
        signal(SIGHUP, SIG_IGN)
        // New files, and the admin socket, are accessible to the owner only.
        umask(0o077)
        try Self.requireDescriptors(DescriptorLimit.raise())
        var plan = try plan()
        let level = LogLevel(logLevel)
        plan.configuration.logLevel = level
        let logger = plan.configuration.recentErrors.counting(
            Logger(label: "waku-push") { [logFormat] _ in LineLogHandler(format: logFormat, level: level) })
        for (name, remedy) in Environment.unknownVariables {
            logger.warning("unknown environment variable", metadata: ["variable": "\(name)", "remedy": "\(remedy)"])
        }

        let attachment = try attachment(of: plan.configuration.identity, logger: logger)
        let posters = try plan.gorush.map { try ReplaceableGorush($0) }
        plan.configuration.setup = { [setup = setup(plan)] in
            var setup = setup
            setup.gorush = posters.map(\.endpoint)
            return setup
        }
        plan.configuration.testPush = { [age = plan.configuration.maximumRequestAge] push in
            var push = push
            push.lifetime = Int(age / .seconds(1))
            return await push.carryOut(
                rules: posters.map(\.endpoint.rule), format: { posters[$0].format }, post: { await posters[$0].post([$1]) })
        }
        plan.configuration.inspectGorush = {
            var found: [AdminAPI.InspectedGorush] = []
            for poster in posters { found.append(await poster.inspect()) }
            return found
        }
        let posted = zip(plan.gorush, posters).map { settings, poster in
            GorushEndpoint(poster, rule: settings.rule, connections: settings.connections, batch: settings.batch, timeout: settings.timeout)
        }
        let endpoints = posted.isEmpty ? [GorushEndpoint.none] : posted
        let manager = ServiceManager(environment: ProcessInfo.processInfo.environment, processID: getpid())
        let configuration = plan.configuration
        func open() throws -> Server { try Server(configuration, gorush: endpoints, logger: logger) { try attachment.relay($0) } }
        let server = try manager?.extendingStart(open) ?? open()
        server.node.cluster.replaceSettings(posters.sharedSettings)
        if let id = attachment.peerID { server.node.cluster.replaceSettings([ClusterConflicts.nodeKey: "\(id)"]) }
        try await attachment.listen()
        let reloading = ReloadService(server: server, plan: plan, gorush: posters, level: level, logger: logger)
        let notifiers = manager.map { [SystemdNotifier(manager: $0, node: server.node, logger: logger)] } ?? []
        let exporters = [plan.traces.flatMap { TraceService($0, plan.configuration, counters: server.node.counters, logger: logger) }]
        // Services stop in reverse order: the node stops before the loopback relay that it uses, and before its last traces are exported.
        var group = ServiceGroupConfiguration(
            services: [any Service](exporters.compactMap(\.self) + attachment.services + [server.node, reloading] + notifiers).map {
                .init(
                    service: $0, successTerminationBehavior: .gracefullyShutdownGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup)
            }, gracefulShutdownSignals: [.sigterm, .sigint], logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() })
        group.maximumGracefulShutdownDuration = .seconds(10)
        try await ServiceGroup(configuration: group).run()
    }

    /// The settings that don't change while the node runs.
    private func setup(_ plan: Plan) -> AdminAPI.Setup {
        var setup = AdminAPI.Setup()
        setup.identityPath = identity.first.map(absolutePath)
        setup.store = Settings.store.value(store)
        setup.relays = relay
        setup.fleets = network.fleet
        setup.hasRelay = plan.configuration.hasRelay
        setup.pubsubTopics = plan.configuration.pubsubTopics.map(\.rawValue)
        setup.protocols = protocols.settings
        setup.takesFeedback = plan.configuration.feedbackSecret != nil
        return setup
    }

    func topics() throws(CommandFailure) -> [PubsubTopic] {
        guard !pubsubTopic.isEmpty else { return [.statusDefault] }
        for topic in pubsubTopic { try Self.checkTopic(topic) }
        return pubsubTopic.map(PubsubTopic.init)
    }
}
