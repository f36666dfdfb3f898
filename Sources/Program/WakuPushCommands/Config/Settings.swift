import Delivery
import NodeAPI
import Logging
import Waku

/// The options of serve, each declared once: for the command line, the environment and the configuration file.
enum Settings {
    static let identity = Setting<[String]>(
        file: "identity",
        "The node's key file, made by waku-push identity new; repeat it for identities that are served beside it while clients move, at most 4. The database belongs to the first."
    )
    static let data = Setting<String>("data", "data", "The data folder, with the database. Created if missing.")
    static let store = Setting<String?>(
        "store",
        "Keep registrations and notifications in a PostgreSQL database instead: a connection string of libpq, without a password, such as postgresql://user@host/database?sslmode=verify-full."
    )
    static let cluster = Setting<String?>(
        "cluster",
        "The name of this node among several that have the same identity, share the PostgreSQL database and divide the work; for example its host name."
    )
    static let relay = Setting<[String]>(
        "relay",
        "A Waku node, its REST API's URL or its multiaddr; repeat it for several. \"loopback\" is a network within this process, and the default unless --session-http is given."
    )
    static let loopbackListen = Setting<AddressArgument>(
        "loopback-listen", AddressArgument(SocketAddress(host: "127.0.0.1", port: 8645)),
        "Address at which the loopback relay serves the REST API of a Waku node.")

    // MARK: libp2p

    static let listen = Setting<[String]>(
        "listen",
        "A multiaddr to listen on for other nodes; repeat it for several. By default only the loopback relay listens, on \(PeerOptions.loopback). off: don't listen."
    )
    static let nodeKey = Setting<String?>(
        file: "node-key",
        "File with the libp2p key, the node's identity towards peers. Created if missing. [default: node.key in the data folder]")
    static let exemptNetwork = Setting<[String]>(
        "exempt-network",
        "Peers from this network are exempt from the connection limits per /24 or /64, and are not disconnected in favour of others: loopback, private, or a range such as 10.0.0.0/8; repeat it for several."
    )
    static let attach = Setting<AttachArgument>(
        "attach", .relay,
        "relay: relay all messages of the pubsub topics. filter: have filter nodes send only messages on the node's content topics, at most 1,000, which is enough for a few hundred registrants."
    )
    static let fleet = Setting<[String]>(
        "fleet", "A fleet of nodes to connect to: \(Fleet.names), or a DNS node list, enrtree://…; repeat it for several.")
    static let peerCount = Setting<Int>("peer-count", 8, "Target number of --fleet nodes that deliver messages.")
    static let dns = Setting<String?>("dns", "DNS server for node lists. [default: the system's servers]")

    static let pubsubTopic = Setting<[String]>(
        "pubsub-topic", "A pubsub topic to listen on; repeat it for several. [default: \(PubsubTopic.statusDefault.rawValue)]")
    static let pollInterval = Setting<DurationArgument>(
        "poll-interval", DurationArgument("300ms"), "Poll interval of the relay, at most 60 s.")

    // MARK: Gorush

    static let gorush = Setting<String?>(
        "gorush",
        "URL of the gorush server, with or without a path. For several servers use gorush-endpoints in the configuration file. none: no gorush, only Web Push. [default: \(GorushOptions.standardURL)]",
        reload: .value)
    static let payloadProfile = Setting<PayloadProfile>(
        "payload-profile", .combined,
        "Format of notifications: \(PayloadProfile.allCases.map(\.rawValue).joined(separator: ", ")).", reload: .value)
    static let allowApnTopic = Setting<[String]>(
        "allow-apn-topic", "An iOS app (APNs topic) that may register; repeat it for several. Default: all apps may.")
    static let sandboxApnTopic = Setting<[String]>(
        "sandbox-apn-topic", "An iOS app (APNs topic) that may register and whose tokens belong to Apple's sandbox; repeat it for several.")
    static let gorushConnections = Setting<Int>(
        "gorush-connections", 8, "Maximum number of concurrent posts to gorush, \(GorushSettings.connectionRange.inWords).")
    static let gorushBatch = Setting<Int>(
        "gorush-batch", 100,
        "Maximum number of notifications in a post, \(GorushSettings.batchRange.inWords). Must not exceed gorush's core.max_notification.")
    static let gorushTimeout = Setting<DurationArgument>(
        "gorush-timeout", DurationArgument("60s"),
        "Timeout of a post, \(GorushSettings.timeoutRange.inWords). After a timeout the notifications are posted again and may arrive twice: set it longer than the slowest post takes.",
        reload: .value)
    static let gorushCa = Setting<String?>(
        file: "gorush-ca", "File with CA certificates (PEM) to trust instead of the system's.", reload: .value)
    static let gorushUser = Setting<String?>("gorush-user", "User name for HTTP basic authentication.", reload: .value)
    static let gorushPasswordFile = Setting<String?>(
        file: "gorush-password-file", "File with the password of --gorush-user.", reload: .value)
    static let gorushTokenFile = Setting<String?>(file: "gorush-token-file", "File with a bearer token.", reload: .value)
    static let gorushHeader = Setting<[String]>(
        "gorush-header", "An additional HTTP header, \"Name: value\"; repeat it for several.", reload: .value)
    static let feedbackSecretFile = Setting<String?>(
        file: "feedback-secret-file",
        "File with the shared secret that gorush's feedback hook sends, 16 to 256 characters. Without it /feedback is disabled.",
        reload: .value)

    // MARK: Web Push

    static let webPush = Setting<Bool>(
        "web-push", "Accept Web Push subscriptions as devices, and post to their push services directly, without gorush.")
    static let webPushKey = Setting<String?>(
        file: "web-push-key",
        "File with the VAPID key by which push services know this node: PEM, or 32 bytes in base64url. Made by waku-push identity new-vapid."
    )
    static let webPushFormerKey = Setting<[String]>(
        file: "web-push-former-key",
        "File with a VAPID key that subscriptions may still be bound to, after a change of --web-push-key; repeat it for several, at most 3."
    )
    static let webPushContact = Setting<String?>(
        "web-push-contact", "The operator's address for push services: mailto:… or https://….")
    static let webPushAllow = Setting<[String]>(
        "web-push-allow",
        "A network that Web Push may connect to although it is not public, such as 192.168.7.0/24, for a distributor in the operator's own network; repeat it for several."
    )
    static let webPushCa = Setting<String?>(
        file: "web-push-ca", "File with CA certificates (PEM) to trust instead of the system's for Web Push.")

    static let webPushByOrigin = Setting<String>(
        "web-push-by-origin", "100/s burst 1000",
        "Maximum rate of posts to one push service, and to one address, with a burst: protects servers that strangers name as theirs.")

    // MARK: Messages and deliveries

    static let maxRequestAge = Setting<DurationArgument>(
        "max-request-age", DurationArgument("10m"),
        "Requests older than this are dropped. A notification that gorush has not accepted by then expires.")
    static let replyDelay = Setting<OptionalDurationArgument>(
        "reply-delay", OptionalDurationArgument(DurationArgument("500ms")),
        "Minimum time between a message and its reply: phones subscribe to the reply's topic about 300 ms after they asked, and ignore an answer to a registration that comes before its sending has ended. At most 2s. off: reply at once."
    )
    static let deriveAhead = Setting<SwitchArgument>(
        "derive-ahead", .on,
        "Derive the key of a registrant's query topic before the first query, on idle cores: on or off. When off, the first query takes 7 ms of CPU time longer."
    )
    static let deriveAheadLimit = Setting<Int>(
        "derive-ahead-limit", 10_000,
        "Maximum number of registrants queued for --derive-ahead in memory. The others are read from the database later.")
    static let outboxLimit = Setting<Int>(
        "outbox-limit", 100_000,
        "Number of notifications that wait for each gorush, beyond which a new one displaces the oldest of the devices with most.")
    static let unknownHold = Setting<OptionalDurationArgument>(
        "unknown-hold", OptionalDurationArgument(DurationArgument("5s")),
        "After a crash: how long a notification that may have been posted is held before it is posted again, counted from its first post. Notifications that a device shows once are posted again at once. At most 60s. off: no hold."
    )
    static let silenceAlarm = Setting<SilenceArgument>(
        "silence-alarm", .automatic,
        "Raise an alarm when no message from anyone was received on the shard for this long. off: never. auto: 10m, or off if loopback is the only relay."
    )
    static let idempotentRegistrations = Setting<Bool>(
        "idempotent-registrations", "Answer a repeated, identical registration with success instead of VERSION_MISMATCH.")
    static let statusV01 = Setting<Bool>(
        "status-v0.1", "Speak version 0.1 of Status' push notifications as well, on the topic push-notifications-N.")
    static let v01APNsTopic = Setting<String?>(
        "v0.1-apns-topic", "The topic of version 0.1's notifications for APNs: the app's bundle id. Without it they have none.")

    // MARK: Session

    static let sessionHttp = Setting<AddressArgument?>(
        "session-http", "Also serve as Session's push server, with its HTTP endpoints at this address. Needs libsodium23.")
    static let sessionProxy = Setting<[String]>(
        "session-proxy",
        "A reverse proxy before --session-http, whose X-Forwarded-For names the client: an address, loopback, private, or a range such as 10.0.0.0/8; repeat it for several."
    )
    static let sessionNodes = Setting<String?>(
        file: "session-nodes",
        "File with the storage servers: a JSON array of objects with pubkey_x25519, ip, port and swarm_id. Reloaded on SIGHUP. The alternative is --session-oxend.",
        reload: .content)
    static let sessionOxend = Setting<String?>(
        "session-oxend",
        "An oxend that knows the storage servers: ipc:///path, tcp://host:port or curve://host:port/<64 hex digits of its key>.")
    static let sessionOnionKey = Setting<String?>(
        file: "session-onion-key", "File with the key for onion requests, made by waku-push session key new.")
    static let sessionApnsTopic = Setting<String?>(
        "session-apns-topic",
        "The topic of Session's notifications for APNs: the app's bundle id. Without it devices of apns and apns-sandbox are refused.")
    static let sessionRenewal = Setting<DurationArgument>(
        "session-renewal", DurationArgument("45m"),
        "Shortest time after which storage servers are asked again to report a subscription's messages, at most 53m; up to 22 % is added at random. Storage servers forget a subscription after 65m."
    )

    static let http = Setting<AddressArgument>(
        "http", AddressArgument(SocketAddress(host: "127.0.0.1", port: 9090)),
        "Address of the status page, /search, /metrics, /healthz, /readyz, /feedback and /web-push.")
    static let httpHost = Setting<[String]>(
        "http-host",
        "A host name that requests to --http and --loopback-listen may use, for instance Prometheus's; repeat it for several. Requests for other names than localhost get 421. IP addresses are always allowed."
    )
    static let documentation = Setting<String?>(
        "documentation",
        "Base URL of this documentation as built by DocC: the status page then links to the section about each alarm. Without it the page names the section."
    )
    static let logLevel = Setting<Logger.Level>(
        "log-level", .info, "Minimum level of log records: trace, debug, info, notice, warning, error or critical.", reload: .value)
    static let logFormat = Setting<LogFormat>("log-format", .text, "Format of log records, one per line on standard error: text or json.")

    // MARK: Traces

    static let otlp = Setting<String?>(
        "otlp",
        "URL of an OpenTelemetry collector that gets traces of messages by OTLP over HTTP, such as http://127.0.0.1:4318. Without it messages are not traced."
    )
    static let otlpRate = Setting<ShareArgument>(
        "otlp-rate", ShareArgument(0.01), "Share of messages whose traces are exported, from 0 to 1.")
    static let otlpSlow = Setting<OptionalDurationArgument>(
        "otlp-slow", OptionalDurationArgument(DurationArgument("2s")),
        "Traces of messages that took longer than this are exported in any case, as are those of failed ones. The reply delay does not count. off: failed ones only."
    )
    static let otlpHeaderFile = Setting<String?>(
        file: "otlp-header-file", "File with an HTTP header for the collector, \"Name: value\", such as a token.")

    // MARK: Limits

    static let limit = Setting<[String]>(
        "limit",
        "A limit such as requests-by-sender=20/s or installations-by-key=100; off for none. Repeat it for several. Limits: \(LimitOptions.standard.map(\.name).joined(separator: ", ")).",
        valueName: "name=value", reload: .value)
    static let allowKeys = Setting<String?>(
        file: "allow-keys", "File with the only keys that may register: a public key or its hash per line, # begins a comment.",
        reload: .value)
    static let denyKeys = Setting<String?>(
        file: "deny-keys", "File with keys that may not register, in the same format. Takes precedence over --allow-keys.", reload: .value)
    static let registrationLifetime = Setting<OptionalDurationArgument>(
        "registration-lifetime", OptionalDurationArgument(nil),
        "Registrations that are not renewed with a higher version within this time are removed. off: never.")

    static let config = Setting<String?>("config", "A YAML file with any of these options; see waku-push config.")

    /// In the order of the help, without `--config`.
    static let all: [ServeOption] = [
        identity.option, data.option, store.option, cluster.option, relay.option, loopbackListen.option, listen.option, nodeKey.option,
        exemptNetwork.option, attach.option, fleet.option, peerCount.option, dns.option, pubsubTopic.option, pollInterval.option,
        gorush.option, payloadProfile.option, allowApnTopic.option, sandboxApnTopic.option, gorushConnections.option,
        gorushBatch.option, gorushTimeout.option, gorushCa.option, gorushUser.option, gorushPasswordFile.option, gorushTokenFile.option,
        gorushHeader.option, feedbackSecretFile.option, webPush.option, webPushKey.option, webPushFormerKey.option,
        webPushContact.option, webPushAllow.option, webPushCa.option, webPushByOrigin.option, maxRequestAge.option, replyDelay.option,
        deriveAhead.option, deriveAheadLimit.option, outboxLimit.option, unknownHold.option, silenceAlarm.option,
        idempotentRegistrations.option,
        statusV01.option, v01APNsTopic.option, sessionHttp.option, sessionProxy.option, sessionNodes.option, sessionOxend.option,
        sessionOnionKey.option,
        sessionApnsTopic.option, sessionRenewal.option, http.option, httpHost.option, documentation.option, logLevel.option,
        logFormat.option, otlp.option, otlpRate.option, otlpSlow.option, otlpHeaderFile.option, limit.option,
        allowKeys.option, denyKeys.option, registrationLifetime.option,
    ]
}
