import Core
import Foundation
import HTTPService
import NodeAPI
import NodeAssembly
import NwakuRelay
import PushNode

/// Checks of single options.
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
        require(pollInterval.duration <= .seconds(60), "--poll-interval must be at most 60s: clients wait 3 s for an answer")
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
        failures.check("peer-count") { try network.checkPeerCount() }
        failures.checkEach("fleet", network.fleet) { _ = try NetworkOptions.nodeLists(of: $0) }
        if peers.listen != ["off"] {
            failures.checkEach("listen", peers.listen) { _ = try PeerOptions.address($0 == "off" ? "" : $0) }
        }
        failures.checkEach("exempt-network", peers.exemptNetwork) { _ = try AddressRange.named([$0], by: "exempt-network") }
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

    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1" || host.hasPrefix("127.")
    }
}
