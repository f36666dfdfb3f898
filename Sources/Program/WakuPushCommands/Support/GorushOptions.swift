import PushNode
import ArgumentParser
import CurlClient
import Delivery
import Core

/// Options for the connection to gorush. Secrets are read from files.
struct GorushOptions: ParsableArguments {
    static let standardURL = "http://127.0.0.1:8088"
    /// In place of a URL: the node posts only to Web Push services.
    static let none = "none"

    @Option(Settings.gorush) var gorush: String?
    @Option(Settings.payloadProfile) var payloadProfile: PayloadProfile
    @Option(Settings.allowApnTopic) var allowApnTopic: [String]
    @Option(Settings.sandboxApnTopic) var sandboxApnTopic: [String]
    @Option(Settings.gorushConnections) var gorushConnections: Int
    @Option(Settings.gorushBatch) var gorushBatch: Int
    @Option(Settings.gorushTimeout) var gorushTimeout: DurationArgument
    @Option(Settings.gorushCa) var gorushCa: String?
    @Option(Settings.gorushUser) var gorushUser: String?
    @Option(Settings.gorushPasswordFile) var gorushPasswordFile: String?
    @Option(Settings.gorushTokenFile) var gorushTokenFile: String?
    @Option(Settings.gorushHeader) var gorushHeader: [String]
    @Option(Settings.feedbackSecretFile) var feedbackSecretFile: String?

    /// Whether the command line, the environment or the configuration file name a server, or how to connect to it.
    var namesServer: Bool {
        let given = [
            Settings.gorush.value(gorush), Settings.gorushCa.value(gorushCa), Settings.gorushUser.value(gorushUser),
            Settings.gorushPasswordFile.value(gorushPasswordFile), Settings.gorushTokenFile.value(gorushTokenFile), gorushHeader.first,
        ]
        return given.contains { $0 != nil } || Environment.file?.endpoints.isEmpty == false
    }

    func feedbackSecret() throws(CommandFailure) -> FeedbackSecret? {
        guard let path = Settings.feedbackSecretFile.value(feedbackSecretFile) else { return nil }
        let text = try SecretFile.read(path)
        // gorush drops headers whose value has a colon, and splits values from its environment at spaces.
        guard (16...256).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != UInt8(ascii: ":") }) else {
            throw CommandFailure(
                .data,
                "secret file \(path) must contain 16 to 256 printable characters without space and colon: create one with openssl rand -hex 24"
            )
        }
        return FeedbackSecret(text)
    }

    /// The endpoints of the configuration file, unless the command line or the environment gives a server.
    ///
    /// - Throws: ``CommandFailure`` for the first that is invalid, also in `notifications`.
    func settings() throws(CommandFailure) -> [GorushSettings] {
        let failures = ConfigurationFailures()
        let settings = settings(failures)
        if let first = failures.failures.first { throw first }
        return settings
    }

    /// - Returns: the servers that are valid.
    func settings(_ failures: ConfigurationFailures) -> [GorushSettings] {
        let endpoints = Environment.file?.endpoints ?? []
        let notifications = notifications(failures)
        let fromFile = Environment.file?.options["gorush"] != nil
        if !endpoints.isEmpty, fromFile {
            failures.check {
                throw CommandFailure(.data, "\(endpoints[0].place): gorush-endpoints and gorush are mutually exclusive: remove one of them")
            }
        }
        let url = Settings.gorush.value(gorush)
        if !endpoints.isEmpty, url == nil {
            guard endpoints.count <= GorushEndpoint.limit else {
                failures.check {
                    throw CommandFailure(
                        .data, "\(endpoints[GorushEndpoint.limit].place): at most \(GorushEndpoint.limit) endpoints are allowed")
                }
                return []
            }
            var settings: [GorushSettings] = []
            for (index, endpoint) in endpoints.enumerated() {
                func read(_ endpoint: ConfigurationFile.Entry) throws -> GorushSettings {
                    try GorushSettings(endpoint, number: index + 1, standard: self, notifications)
                }
                // The values one by one, each beside a valid URL, so that an error does not hide the next.
                for part in endpoint.parts(with: [EndpointKey.url.rawValue: Self.standardURL]) { failures.check { try read(part) } }
                guard let next = failures.check(body: { try read(endpoint) }) else { continue }
                if settings.contains(where: { $0.rule.name == next.rule.name }) {
                    failures.check {
                        throw CommandFailure(
                            .data, "\(endpoint.place(of: .name)): duplicate endpoint name \(next.rule.name): names must be unique")
                    }
                }
                settings.append(next)
            }
            return settings
        }
        if url == Self.none { return [] }
        return [
            GorushSettings(
                url: url ?? Self.standardURL,
                rule: EndpointRule(apnTopics: allowApnTopic.isEmpty ? nil : Set(allowApnTopic), sandboxTopics: Set(sandboxApnTopic)),
                profile: payloadProfile, notifications: notifications.rules(forEndpoint: EndpointRule().name),
                connections: failures.check { try GorushSettings.value(.connections, gorushConnections, GorushSettings.connectionRange) }
                    ?? 1,
                batch: failures.check { try GorushSettings.value(.batch, gorushBatch, GorushSettings.batchRange) } ?? 1,
                timeout: failures.check { try GorushSettings.value(.timeout, gorushTimeout, GorushSettings.timeoutRange).duration }
                    ?? GorushClient.standardTimeout,
                ca: Settings.gorushCa.value(gorushCa),
                user: Settings.gorushUser.value(gorushUser),
                passwordFile: Settings.gorushPasswordFile.value(gorushPasswordFile),
                tokenFile: Settings.gorushTokenFile.value(gorushTokenFile), headers: gorushHeader, entry: nil)
        ]
    }

    /// The operator's settings for all gorush servers.
    ///
    /// - Throws: ``CommandFailure`` with the line of the first error.
    func notifications() throws(CommandFailure) -> NotificationSettings {
        try NotificationSettings(Environment.file?.notifications ?? [], endpoints: endpointNames)
    }

    private func notifications(_ failures: ConfigurationFailures) -> NotificationSettings {
        for entry in Environment.file?.notifications ?? [] {
            for part in NotificationEntry.parts(of: entry) {
                failures.check { try NotificationEntry(entry: part, endpoints: endpointNames).rule() }
            }
        }
        return failures.check { try notifications() } ?? NotificationSettings([])
    }

    /// The names of all gorush servers.
    private var endpointNames: [String] {
        (Environment.file?.endpoints ?? []).enumerated().map { GorushSettings.name(of: $1, number: $0 + 1) } + [EndpointRule().name]
    }
}

/// The configuration of a gorush server.
struct GorushSettings {
    static let connectionRange = 1...64
    static let batchRange = 1...100
    /// The minimum exceeds the time that requests wait for an outcome; after the maximum a notification has expired.
    static let timeoutRange = DurationArgument("5s")...DurationArgument("10m")

    var url: String
    var rule: EndpointRule
    let profile: PayloadProfile
    /// Settings for this server.
    var notifications: NotificationSettings
    let connections: Int
    let batch: Int
    let timeout: Duration
    let ca: String?
    let user: String?
    let passwordFile: String?
    let tokenFile: String?
    let headers: [String]
    /// The entry of the configuration file; nil for a server that options describe.
    let entry: ConfigurationFile.Entry?
    /// For the profile `private`: see `NotificationFormat.init`.
    var ids: NotificationIDCipher?

    /// Where a setting is from: file and line, or an environment variable; nil for the command line.
    func place(of key: EndpointKey) -> String? {
        entry.map { $0.place(of: key) } ?? ServeOption.place(of: key.option?.name)
    }

    /// Checks URL, certificates, credentials and headers, each by itself.
    func check(_ failures: ConfigurationFailures) {
        failures.check(at: place(of: .ca)) { try trust() }
        failures.check(at: place(of: tokenFile == nil ? .passwordFile : .tokenFile)) { try credentials() }
        for header in headers {
            failures.check(at: place(of: .headers)) { try Self.header(header, of: rule.name) }
        }
        failures.check(at: place(of: .url)) {
            try GorushClient(client: CurlClient(), url: url, profile: profile, settings: notifications, timeout: timeout)
        }
        failures.check(at: place(of: .payloadProfile)) { try checkPrivacy() }
    }

    /// With the profile `private`, no setting may tell notifications apart.
    private func checkPrivacy() throws(CommandFailure) {
        guard profile == .private else { return }
        let names = notifications.distinctions(fixedProtocols: NotificationEntry.fixedProtocols)
        guard !names.isEmpty else { return }
        throw CommandFailure(
            .data,
            "notifications for \(rule.name) have \(names.joined(separator: ", ")), by which Apple and Google could tell them apart: remove these, or choose another payload-profile"
        )
    }

    /// Inspects gorush with these credentials.
    ///
    /// - Throws: ``CommandFailure`` for credentials that can't be read.
    func inspect() async throws(CommandFailure) -> AdminAPI.InspectedGorush {
        let client = CurlClient(configuration: try curlConfiguration())
        do throws(GorushError) {
            return AdminAPI.InspectedGorush(rule, try await GorushInspection(client: client, url: url))
        } catch {
            return AdminAPI.InspectedGorush(rule, nil, problem: error.message)
        }
    }

    var format: NotificationFormat { NotificationFormat(profile, settings: notifications, ids: ids) }

    func client() throws -> GorushClient {
        try GorushClient(
            client: CurlClient(configuration: try curlConfiguration()), url: url, profile: profile, settings: notifications,
            ids: ids, timeout: timeout)
    }

    func curlConfiguration() throws(CommandFailure) -> CurlConfiguration {
        var configuration = CurlConfiguration()
        // A post that waits for a connection would count as unanswered.
        configuration.maximumConnectionsPerHost = max(configuration.maximumConnectionsPerHost, connections)
        configuration.trust = try trust()
        configuration.readsCertificates = true
        configuration.credentials = try credentials()
        for header in headers { configuration.headers.append(try Self.header(header, of: rule.name)) }
        return configuration
    }

    private func trust() throws(CommandFailure) -> CurlConfiguration.Trust {
        guard let ca else { return .system }
        return try CertificateFile.trust(ca, option: "--gorush-ca")
    }

    private static func header(_ text: String, of name: String) throws(CommandFailure) -> (String, String) {
        guard let header = CurlConfiguration.header(parsing: text) else {
            throw CommandFailure(
                .usage,
                "a header for \(name) does not have the form \"Name: value\", in characters that HTTP allows, or is one that the node sets, such as Content-Length: see --gorush-header"
            )
        }
        return header
    }

    private func credentials() throws(CommandFailure) -> HTTPCredentials {
        if let tokenFile {
            guard user == nil else {
                throw CommandFailure(.usage, "--gorush-user and --gorush-token-file are mutually exclusive: give \(rule.name) one of them")
            }
            return .bearer(token: try SecretFile.read(tokenFile))
        }
        guard let user else {
            guard passwordFile == nil else { throw CommandFailure(.usage, "--gorush-password-file needs --gorush-user") }
            return .none
        }
        guard let passwordFile else { throw CommandFailure(.usage, "--gorush-user needs --gorush-password-file") }
        return .basic(user: user, password: try SecretFile.read(passwordFile))
    }
}

extension GorushSettings {
    fileprivate static func name(of endpoint: ConfigurationFile.Entry, number: Int) -> String { endpoint[.name] ?? "gorush \(number)" }

    /// - Parameters:
    ///   - number: its position, from 1: the default name.
    ///   - standard: options for keys that the endpoint does not have.
    ///   - notifications: the settings for all servers.
    fileprivate init(
        _ endpoint: ConfigurationFile.Entry, number: Int, standard: GorushOptions, _ notifications: NotificationSettings
    ) throws(CommandFailure) {
        guard let url = endpoint[.url] else { throw CommandFailure(.data, "\(endpoint.place): this endpoint has no url") }
        func find<Value>(
            _ key: EndpointKey, _ noun: String, among all: [Value], _ name: (Value) -> String
        ) throws(CommandFailure) -> [Value] {
            var found: [Value] = []
            for wanted in endpoint.list(key) ?? [] {
                guard let value = all.first(where: { name($0) == wanted }) else {
                    let names = all.map(name).joined(separator: ", ")
                    throw CommandFailure(.data, "\(endpoint.place(of: key)): unknown \(noun) \(wanted): use \(names)")
                }
                found.append(value)
            }
            return found
        }
        let platforms = try find(.platforms, "platform", among: Platform.ofGorush, \.name)
        let services = try find(.services, "service", among: PushService.ofGorush, \.rawValue)
        let profile = try find(.payloadProfile, "payload-profile", among: PayloadProfile.allCases, \.rawValue).last
        let name = Self.name(of: endpoint, number: number)
        self.init(
            url: url,
            rule: EndpointRule(
                name: name, platforms: platforms.isEmpty ? nil : Set(platforms), apnTopics: endpoint.list(.apnTopics).map(Set.init),
                sandboxTopics: Set(endpoint.list(.sandboxTopics) ?? []), services: services.isEmpty ? nil : Set(services)),
            profile: profile ?? standard.payloadProfile, notifications: notifications.rules(forEndpoint: name),
            connections: try Self.value(.connections, of: endpoint, standard.gorushConnections, Self.connectionRange),
            batch: try Self.value(.batch, of: endpoint, standard.gorushBatch, Self.batchRange),
            timeout: try Self.value(.timeout, of: endpoint, standard.gorushTimeout, Self.timeoutRange).duration,
            ca: endpoint[.ca] ?? Settings.gorushCa.value(standard.gorushCa),
            user: endpoint[.user], passwordFile: endpoint[.passwordFile], tokenFile: endpoint[.tokenFile],
            headers: endpoint.list(.headers) ?? [], entry: endpoint)
    }

    /// - Parameter standard: the value of the option, for a server without this key.
    fileprivate static func value<Value: ExpressibleByArgument & Comparable & CustomStringConvertible>(
        _ key: EndpointKey, of endpoint: ConfigurationFile.Entry? = nil, _ standard: Value, _ range: ClosedRange<Value>
    ) throws(CommandFailure) -> Value {
        guard let endpoint, let text = endpoint[key] else {
            guard range.contains(standard) else { throw CommandFailure(.usage, "--gorush-\(key.rawValue) must be \(range.inWords)") }
            return standard
        }
        guard let value = Value(argument: text), range.contains(value) else {
            throw CommandFailure(.data, "\(endpoint.place(of: key)): \(key.rawValue) must be \(range.inWords)")
        }
        return value
    }
}
