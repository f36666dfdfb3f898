import Core
import Delivery
import Foundation
import HTTPService
import NodeAPI
import NodeAssembly
import NwakuRelay
import PushNode
import RateLimits
import StatusServer
import WakuP2P

/// Checks of single options, and warnings.
extension Serve {
    /// The command line without values that can't be read, for the commands that report all errors at once: `serve` and `config check`.
    /// The errors are kept with those of the environment.
    ///
    /// - Parameter arguments: the command line, without the program's name.
    static func readableArguments(_ arguments: [String]) -> [String] {
        guard arguments.first == "serve" || arguments.starts(with: ["config", "check"]) else { return arguments }
        let (kept, failures) = ServeOption.removingInvalidValues(arguments)
        for failure in failures { Environment.note(failure) }
        return kept
    }

    /// The values of the options that protocols of other packages declare, by name; defaults included.
    func addedOptions(_ failures: ConfigurationFailures) -> [String: String] {
        var values: [String: String] = [:]
        for option in ServeOption.added {
            let value = option.value(Invocation.current.arguments)
            guard let text = value.values.last, let form = option.form else { continue }
            if form.accepts(text) {
                values[option.name] = text
            } else {
                let source = value.source == "command line" ? "--\(option.name)" : Environment.setting(option.name)?.source ?? value.source
                failures.check { throw ValueForm.problem(source, option: option.name, value: text, allowed: form.allowed) }
            }
        }
        return values
    }

    static func checkTopic(_ topic: String) throws(CommandFailure) {
        guard topic.hasPrefix("/"), topic.utf8.count <= 256 else {
            throw CommandFailure(.usage, "--pubsub-topic \(topic) is not a pubsub topic: it should look like /waku/2/rs/16/32")
        }
    }

    static func checkHost(_ name: String) throws(CommandFailure) {
        guard HostPolicy.isName(name) else {
            throw CommandFailure(
                .usage, "--http-host \(name) is not a host name: give it without scheme, port and path, for example push.example")
        }
    }

    /// Without a slash at the end.
    func documentationAddress() throws(CommandFailure) -> String? {
        guard let address = Settings.documentation.value(documentation) else { return nil }
        guard let parts = URLComponents(string: address), ["https", "http"].contains(parts.scheme), parts.host?.isEmpty == false,
            parts.query == nil, parts.fragment == nil, parts.user == nil
        else {
            throw CommandFailure(.usage, "--documentation \(address) is not an address such as https://docs.example/documentation/pushnode")
        }
        return address.hasSuffix("/") ? String(address.dropLast()) : address
    }

    func checkRanges(of configuration: ServerConfiguration, _ failures: ConfigurationFailures) {
        func require(_ isValid: Bool, _ message: String) {
            guard !isValid else { return }
            failures.check { throw CommandFailure(.usage, message) }
        }
        require((1...100_000_000).contains(outboxLimit), "--outbox-limit must be from 1 to 100000000")
        require(
            configuration.unknownHold <= NodeConfiguration.unknownHoldLimit,
            "--unknown-hold must be at most 60s: a notification that is held longer is worth little")
        require(
            configuration.replyDelay <= NodeConfiguration.replyDelayLimit,
            "--reply-delay must be at most 2s: clients wait 3 s for an answer")
        require(
            (1...10_000_000).contains(deriveAheadLimit),
            "--derive-ahead-limit must be from 1 to 10000000; --derive-ahead off derives none")
    }

    /// Whether any device can be notified.
    func checkDevices(_ failures: ConfigurationFailures) {
        guard Settings.gorush.value(gorush.gorush) == GorushOptions.none, !webPush.webPush else { return }
        failures.check {
            throw CommandFailure(.usage, "--gorush none needs --web-push: otherwise no device could be notified")
        }
    }

    /// Checks addresses one by one; the attachment checks the whole.
    func checkRelays(_ failures: ConfigurationFailures) {
        if servesLoopback, http.address == loopbackListen.address, http.address.port != 0 {
            failures.check("loopback-listen") {
                throw CommandFailure(.usage, "--loopback-listen has the address of --http, \(http.address): give them different ports")
            }
        }
        failures.checkEach("relay", relay) { name in
            guard name != "loopback" else { return }
            if name.hasPrefix("/") { _ = try RelayTargets.peer(name) } else { _ = try NodeAddress(name) }
        }
        failures.check("peer-count") { [network] in
            var options = network
            options.fleet = []
            _ = try options.nodeLists()
        }
        failures.checkEach("fleet", network.fleet) { [network] in
            var options = network
            (options.fleet, options.peerCount) = ([$0], 1)
            _ = try options.nodeLists()
        }
        if peers.listen != ["off"] {
            failures.checkEach("listen", peers.listen) { [peers] in
                var options = peers
                options.listen = [$0 == "off" ? "" : $0]
                _ = try options.addresses(hasLoopback: false)
            }
        }
        failures.checkEach("exempt-network", peers.exemptNetwork) { [peers] in
            var options = peers
            options.exemptNetwork = [$0]
            _ = try options.exemptAddresses()
        }
    }

    // MARK: Warnings

    /// Settings that are allowed but unlikely to be wanted.
    ///
    /// - Returns: a line each, with the place of the option.
    func warnings(_ plan: Plan) -> [String] {
        var warnings: [String] = []
        func warn(_ place: String?, _ message: String) {
            warnings.append(place.map { "\($0): \(message)" } ?? message)
        }
        for settings in plan.gorush where Self.isPlain(settings.url) {
            let hasSecret = settings.user != nil || settings.tokenFile != nil || !settings.headers.isEmpty
            let what = hasSecret ? "device tokens and gorush's credentials" : "device tokens"
            warn(
                settings.place(of: .url),
                "\(what) cross the network unencrypted to \(settings.rule.name): give it an https:// URL, or run gorush on this machine")
        }
        if let url = traces.url, Self.isPlain(url) {
            let what = traces.headerFile == nil ? "traces" : "traces and the header of --otlp-header-file"
            warn(
                ServeOption.place(of: "otlp"),
                "\(what) cross the network unencrypted to the collector: give --otlp an https:// URL, or run a collector on this machine")
        }
        let parent = Self.nearestFolder(to: data)
        if !FileManager.default.fileExists(atPath: data), access(parent, W_OK | X_OK) != 0 {
            warn(ServeOption.place(of: "data"), "data folder \(data) can't be made by this user: make it for the daemon's user")
        }
        let names = plan.configuration.httpHosts
        for (option, address) in listeners where !Self.isLoopback(address.host) && names.isEmpty {
            warn(
                ServeOption.place(of: option),
                "--\(option) \(address) can be reached from other machines, and no --http-host is given: requests that use a host name get 421; name the hosts, and let a firewall admit only those that need it"
            )
        }
        for conflict in plan.configuration.limits.conflicts {
            let index = limits.limit.lastIndex { $0.hasPrefix("\(conflict.name)=") }
            let other = limits.limit.lastIndex { $0.hasPrefix("\(conflict.other)=") }
            warn(ServeOption.place(of: "limit", index: index ?? other ?? 0), "--limit: \(conflict.message)")
        }
        if plan.configuration.limits.allowed?.isEmpty == true {
            warn(ServeOption.place(of: "allow-keys"), "the file of --allow-keys lists no key, so that no device may register: add the keys")
        }
        for settings in plan.gorush where settings.timeout >= plan.configuration.maximumRequestAge {
            warn(
                settings.place(of: .timeout),
                "a post to \(settings.rule.name) may take as long as a notification is kept (--max-request-age): it expires before it can be posted again; give a shorter timeout"
            )
        }
        if let lifetime = plan.configuration.registrationLifetime, lifetime < .seconds(60 * 86_400) {
            warn(
                ServeOption.place(of: "registration-lifetime"),
                "--registration-lifetime is below 60 days: clients renew their registrations every 30 days, and devices of users who do not open their app so often lose their notifications"
            )
        }
        for (path, place) in secretFiles(plan) where PrivateFile.isReadableByOthers(path) {
            warn(place, "secret file \(path) is readable by others: chmod 600 \(path)")
        }
        for (name, place) in Environment.file?.unset ?? [] {
            warn(place, "\(name) has no value, which counts as not set: the default of --\(name) applies")
        }
        for option in ServeOption.all {
            let variable = Environment.name(of: option.name)
            guard Invocation.current.environment[variable] == "" else { continue }
            warnings.append(
                "\(variable) is empty, which counts as not set: the configuration file or the default of --\(option.name) applies")
        }
        if plan.configuration.unknownHold >= plan.configuration.maximumRequestAge {
            warn(
                ServeOption.place(of: "unknown-hold"),
                "--unknown-hold is not below --max-request-age: notifications that are held expire before they are posted; give a shorter hold"
            )
        }
        for (name, remedy) in Environment.unknownVariables {
            warn(nil, "the environment variable \(name) belongs to no option: \(remedy)")
        }
        return warnings
    }

    /// Files with secrets for gorush, and where each is named.
    private func secretFiles(_ plan: Plan) -> [(path: String, place: String?)] {
        let credentials = plan.gorush.flatMap { settings in
            [(EndpointKey.tokenFile, settings.tokenFile), (.passwordFile, settings.passwordFile)].compactMap { key, path in
                path.map { ($0, settings.place(of: key)) }
            }
        }
        let feedback = Settings.feedbackSecretFile.value(gorush.feedbackSecretFile)
        return credentials + (feedback.map { [($0, ServeOption.place(of: "feedback-secret-file"))] } ?? [])
    }

    // MARK: Recommendations

    /// Advice for new installations, which no deployed app binds: the data folder does not exist yet, or has nothing but keys.
    func recommendations(_ plan: Plan) -> [String] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: data)) ?? []
        let unset = plan.gorush.filter { $0.entry?[.payloadProfile] == nil }
        guard files.allSatisfy({ $0.hasSuffix(".key") }), !unset.isEmpty, !ServeOption.isGiven(["payload-profile"]) else { return [] }
        return [
            "for a new installation choose --payload-profile private, with which Apple and Google see a constant text and a random id; apps must fetch their messages themselves (article Privacy). The default is combined, for deployed apps"
        ]
    }

    /// The HTTP addresses of the node and its loopback relay, by option.
    var listeners: [(option: String, address: SocketAddress)] {
        [("http", http.address)] + (servesLoopback ? [("loopback-listen", loopbackListen.address)] : [])
    }

    private var servesLoopback: Bool { hasRelay && (relay.isEmpty && network.fleet.isEmpty || relay.contains("loopback")) }

    /// The libraries end the process, or name another cause, when they get no descriptor during the start.
    ///
    /// - Throws: ``CommandFailure`` when the node can't start with this limit of open files.
    static func requireDescriptors(_ limit: Int) throws(CommandFailure) {
        guard limit < DescriptorLimit.minimum else { return }
        throw CommandFailure(
            .unavailable,
            "the limit of open files is \(limit), too low to start: raise it to 1024 or more (LimitNOFILE= of systemd, ulimit -n)")
    }

    /// The folder, or its nearest parent that exists.
    static func nearestFolder(to path: String) -> String {
        var url = URL(fileURLWithPath: path)
        while !FileManager.default.fileExists(atPath: url.path), url.path != "/" { url.deleteLastPathComponent() }
        return url.path
    }

    /// Whether a URL is plain HTTP to another machine.
    private static func isPlain(_ url: String) -> Bool {
        guard url.lowercased().hasPrefix("http://") else { return false }
        let authority = url.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" }
        let host = authority.hasPrefix("[") ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
        return !isLoopback(String(host))
    }

    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1" || host.hasPrefix("127.")
    }
}
