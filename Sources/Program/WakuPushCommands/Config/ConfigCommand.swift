import ArgumentParser
import Foundation
import StorePostgreSQL

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Checks and prints the configuration: file, environment and options.",
        discussion: """
            A configuration file is YAML; its keys are the names of the options of serve. The command line takes precedence over the \
            environment, that over the file, and that over the defaults. serve, doctor, admin and config read the file given by --config \
            or WAKU_PUSH_CONFIG.

            EXAMPLES
              waku-push config default > waku-push.yaml
              waku-push config check --config waku-push.yaml
              waku-push config show --config waku-push.yaml
            """,
        subcommands: [Check.self, Show.self, Default.self])

    struct Check: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Validates the configuration, including the files that it names, without connecting to anything.",
            usage: "waku-push config check [--config FILE] <options of serve>",
            discussion: """
                All errors are listed, a line each, with file and line; the exit code is that of the first. serve lists the same. Warnings \
                are for settings that are allowed but unlikely to be wanted, such as a bearer token over plain HTTP: they do not change the \
                exit code, and nor do recommendations for new installations.
                """)

        @OptionGroup(title: "Options of serve")
        var options: Serve

        static let checksOptions = false

        func execute() async throws {
            let plan = try options.plan()
            for warning in options.warnings(plan) { CommandFailure.report("warning: \(warning)") }
            for advice in options.recommendations(plan) { CommandFailure.report("recommendation: \(advice)") }
            Output.line("The configuration is valid.")
        }
    }

    struct Show: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints each option with its value and the source of the value.",
            usage: "waku-push config show [--config FILE] [--json] <options of serve>",
            discussion: "Secrets are in separate files. Of a header only the name is printed.")

        @OptionGroup(title: "Options of serve")
        var options: Serve

        @Flag(help: "Print JSON.")
        var json = false

        func execute() async throws {
            let values =
                ServeOption.all.map { $0.shown(Invocation.current.arguments).withoutSecrets } + (Environment.file?.shownEntries ?? [])
            guard !json else { return try Output.json(values) }
            Output.table(
                ["OPTION", "VALUE", "FROM"],
                values.map { value in
                    [value.option, value.values.isEmpty ? "–" : value.values.joined(separator: ", "), value.source]
                })
        }
    }

    struct Default: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints a configuration file with all options and their defaults, commented out.")

        func run() throws {
            Output.text(Self.text)
        }

        /// All options, commented out.
        static var text: String {
            let head = """
                # For waku-push serve --config FILE. All options are commented out and show their defaults: uncomment those that you change.
                # The command line and the environment take precedence over this file. kill -HUP reloads it.
                """
            let tail = """
                # Several gorush servers: a notification goes to the first endpoint for its platform and app. Use this instead of gorush and
                # the gorush- options.
                #gorush-endpoints:
                #  - name: apple
                #    url: https://gorush-apple.example
                #    platforms: [apn]
                #    apn-topics: [im.status.ethereum]
                #    apn-sandbox-topics: [im.status.ethereum.pr]
                #    ca: /etc/waku-push/ca.pem
                #    token-file: /etc/waku-push/gorush-apple.token
                #  - name: google
                #    url: https://gorush-google.example
                #    platforms: [firebase]
                #    user: waku-push
                #    password-file: /etc/waku-push/gorush-google.password
                #  - name: session
                #    url: https://gorush-session.example
                #    services: [apns, apns-sandbox, firebase, huawei]

                # How notifications look and travel: see the section of the same name in the documentation of the configuration. Every
                # entry that matches applies; of several with the same setting, the last one. kill -HUP reloads them. To see the result:
                # waku-push admin test-push --preview
                #notifications:
                #  - ttl: remaining
                #    collapse: message
                #  - platforms: [firebase]
                #    priority: high
                #  - platforms: [apn]
                #    kinds: [mention, contact-request]
                #    interruption-level: time-sensitive
                #  - apps: [im.status.ethereum.pr]
                #    development: true
                """
            return ([head] + ServeOption.all.map(\.inFile) + [tail]).joined(separator: "\n\n")
        }
    }
}

extension ServeOption {
    /// The effective value. An optional one has no default for ArgumentParser: the end of its help says which applies.
    fileprivate func shown(_ arguments: [String]) -> Value {
        let value = value(arguments)
        guard value.values.isEmpty, value.source == "default", let end = help.firstMatch(of: /\ \[default: (.+)\]$/) else { return value }
        return Value(option: name, values: [String(end.1)], source: value.source)
    }

    fileprivate var inFile: String {
        let comment = Self.wrapped(help, width: 110).map { "# \($0)" }.joined(separator: "\n")
        if name == "limit" {
            return comment + "\n#limit:\n" + LimitOptions.standard.map { "#  \($0.name): \($0.value)" }.joined(separator: "\n")
        }
        if isList { return comment + "\n#\(name): []" }
        let value = standard.map { " \($0)" } ?? ""
        return comment + "\n#\(name):\(value)"
    }
}

extension ServeOption.Value {
    fileprivate var withoutSecrets: Self {
        if option == "store" {
            // A connection string with a password is rejected elsewhere.
            return Self(option: option, values: values.map { (try? PostgreSQLAddress($0)) == nil ? "…" : $0 }, source: source)
        }
        guard option == "gorush-header" || option.hasSuffix(" headers") else { return self }
        return Self(option: option, values: values.map { "\($0.prefix { $0 != ":" }): …" }, source: source)
    }
}

extension ConfigurationFile {
    fileprivate var shownEntries: [ServeOption.Value] {
        shown(endpoints, Self.endpointsKey, keys: EndpointKey.allCases.map(\.rawValue))
            + shown(notifications, Self.notificationsKey, keys: NotificationKey.allCases.map(\.rawValue))
    }

    private func shown(_ entries: [Entry], _ name: String, keys: [String]) -> [ServeOption.Value] {
        entries.enumerated().flatMap { index, entry in
            keys.compactMap { key in
                entry.options[key].map {
                    ServeOption.Value(option: "\(name)[\(index)] \(key)", values: $0.values, source: $0.place).withoutSecrets
                }
            }
        }
    }
}
