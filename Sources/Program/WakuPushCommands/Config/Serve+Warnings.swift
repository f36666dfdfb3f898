import Delivery
import Foundation
import NodeAPI
import NodeAssembly
import PushNode
import RateLimits
import StatusServer

/// Settings that are allowed but unlikely to be wanted.
extension Serve {
    /// - Returns: a line each, with the place of the option.
    func warnings(_ plan: Plan) -> [String] {
        var warnings: [String] = []
        func warn(_ place: String?, _ message: String) {
            warnings.append(place.map { "\($0): \(message)" } ?? message)
        }
        checkTransport(plan, warn)
        checkFiles(plan, warn)
        checkLimits(plan, warn)
        checkTimes(plan, warn)
        checkUnset(warn)
        return warnings
    }

    /// Takes the place of the option, nil for the command line, and the message.
    private typealias Warn = (String?, String) -> Void

    private func checkTransport(_ plan: Plan, _ warn: Warn) {
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
        for (option, address) in listeners where !Self.isLoopback(address.host) && plan.configuration.httpHosts.isEmpty {
            warn(
                ServeOption.place(of: option),
                "--\(option) \(address) can be reached from other machines, and no --http-host is given: requests that use a host name get 421; name the hosts, and let a firewall admit only those that need it"
            )
        }
    }

    private func checkFiles(_ plan: Plan, _ warn: Warn) {
        if !FileManager.default.fileExists(atPath: data), access(Self.nearestFolder(to: data), W_OK | X_OK) != 0 {
            warn(ServeOption.place(of: "data"), "data folder \(data) can't be made by this user: make it for the daemon's user")
        }
        for (path, place) in secretFiles(plan) where PrivateFile.isReadableByOthers(path) {
            warn(place, "secret file \(path) is readable by others: chmod 600 \(path)")
        }
        for settings in plan.gorush where !settings.headers.isEmpty {
            guard let place = settings.place(of: .headers) else {
                warn(
                    nil,
                    "all users of this machine can see --gorush-header on the command line: if it is secret, put it into the configuration file"
                )
                continue
            }
            if let file = Environment.file?.path, place.hasPrefix("\(file):"), PrivateFile.isReadableByAll(file) {
                warn(
                    place,
                    "all users of this machine can read \(file): if the header is secret, permit only the daemon's user to read the file")
            }
        }
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

    private func checkLimits(_ plan: Plan, _ warn: Warn) {
        for conflict in plan.configuration.limits.conflicts {
            let index = limits.limit.lastIndex { $0.hasPrefix("\(conflict.name)=") }
            let other = limits.limit.lastIndex { $0.hasPrefix("\(conflict.other)=") }
            warn(ServeOption.place(of: "limit", index: index ?? other ?? 0), "--limit: \(conflict.message)")
        }
        if plan.configuration.limits.allowed?.isEmpty == true {
            warn(ServeOption.place(of: "allow-keys"), "the file of --allow-keys lists no key, so that no device may register: add the keys")
        }
    }

    private func checkTimes(_ plan: Plan, _ warn: Warn) {
        for settings in plan.gorush where settings.timeout >= plan.configuration.maximumRequestAge {
            warn(
                settings.place(of: .timeout),
                "a post to \(settings.rule.name) may take as long as a notification is kept (--max-request-age): it expires before it can be posted again; give a shorter timeout"
            )
        }
        if plan.configuration.unknownHold >= plan.configuration.maximumRequestAge {
            warn(
                ServeOption.place(of: "unknown-hold"),
                "--unknown-hold is not below --max-request-age: notifications that are held expire before they are posted; give a shorter hold"
            )
        }
        if let lifetime = plan.configuration.registrationLifetime, lifetime < .seconds(60 * 86_400) {
            warn(
                ServeOption.place(of: "registration-lifetime"),
                "--registration-lifetime is below 60 days: clients renew their registrations every 30 days, and devices of users who do not open their app so often lose their notifications"
            )
        }
    }

    /// Names that are given and set nothing.
    private func checkUnset(_ warn: Warn) {
        for (name, place) in Environment.file?.unset ?? [] {
            warn(place, "\(name) has no value, which counts as not set: the default of --\(name) applies")
        }
        for option in ServeOption.all {
            let variable = Environment.name(of: option.name)
            guard Invocation.current.environment[variable] == "" else { continue }
            warn(nil, "\(variable) is empty, which counts as not set: the configuration file or the default of --\(option.name) applies")
        }
        for (name, remedy) in Environment.unknownVariables {
            warn(nil, "the environment variable \(name) belongs to no option: \(remedy)")
        }
    }

    // MARK: Recommendations

    /// Advice for new installations, which no deployed app binds: the data folder does not exist yet, or has nothing but keys.
    func recommendations(_ plan: Plan) -> [String] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: data)) ?? []
        let unset = plan.gorush.filter { $0.entry?[.payloadProfile] == nil }
        guard files.allSatisfy({ $0.hasSuffix(".key") }), !unset.isEmpty, !ServeOption.isGiven("payload-profile") else { return [] }
        return [
            "for a new installation choose --payload-profile private, with which Apple and Google see a constant text and a random id; apps must fetch their messages themselves (article Privacy). The default is combined, for deployed apps"
        ]
    }

    /// Whether a URL is plain HTTP to another machine.
    private static func isPlain(_ url: String) -> Bool {
        guard url.lowercased().hasPrefix("http://") else { return false }
        let authority = url.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" }
        let host = authority.hasPrefix("[") ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
        return !isLoopback(String(host))
    }
}
