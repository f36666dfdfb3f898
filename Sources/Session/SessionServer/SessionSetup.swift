package import Core
package import NodeAPI

/// The setup of Session's push server as `doctor` finds it: its files, and its rows in the database.
package struct SessionSetup: Hashable, Sendable {
    package enum Servers: Hashable, Sendable {
        /// A file, with the number of its storage servers.
        case file(count: Int)
        case unusable(String)
        /// An oxend at this address provides the list.
        case oxend(String)
    }

    package let isOn: Bool
    /// The problem with the file of the onion key; nil if there is none, or if this user can't read the file of a running daemon.
    package let keyProblem: String?
    /// The source of the list of storage servers.
    package let servers: Servers
    /// Subscriptions in the database, by service.
    package let subscriptions: [PushService: Int]
    /// The services with an endpoint; nil if the daemon checks them.
    package let services: Set<PushService>?

    package init(
        isOn: Bool, keyProblem: String?, servers: Servers, subscriptions: [PushService: Int], services: Set<PushService>? = nil
    ) {
        self.isOn = isOn
        self.keyProblem = keyProblem
        self.servers = servers
        self.subscriptions = subscriptions
        self.services = services
    }
}

extension SessionChecks {
    /// The name of the fact that has the onion key's public half.
    static let onionKeyFact = "onion key"

    /// The public key in use at a node with these facts, in hexadecimal digits.
    package static func onionKeyInUse(_ facts: [ProtocolFact]) -> String? { facts.first { $0.name == onionKeyFact }?.value }

    /// Findings on the setup, and those of the daemon on storage servers and services.
    ///
    /// - Parameter daemon: all findings of the daemon; empty if none runs.
    package static func doctor(_ setup: SessionSetup, daemon: [Finding]) -> [Finding] {
        let name = SessionPush.protocolName
        guard setup.isOn else {
            let count = setup.subscriptions.values.reduce(0, +)
            guard count > 0 else { return [] }
            return [
                Finding(
                    name, .warn, "off, but \(count) subscriptions are stored: nobody is notified",
                    remedy: "start the daemon with --session-http; without it they expire after 14 days")
            ]
        }
        let unserved = setup.services.flatMap { NodeChecks.unserved("Session", setup.subscriptions, serves: $0.contains) }
        return [onionKey(setup.keyProblem), servers(setup.servers)] + (unserved.map { [$0] } ?? [])
            + daemon.filter { $0.check.hasPrefix(name) }
    }

    private static func onionKey(_ problem: String?) -> Finding {
        problem.map { Finding("onion key", .fail, $0) } ?? Finding("onion key", .ok, "read")
    }

    private static func servers(_ servers: SessionSetup.Servers) -> Finding {
        switch servers {
        case .file(0): Finding("storage servers", .fail, "the file has none", remedy: "check --session-nodes")
        case .file(let count): Finding("storage servers", .ok, "\(count) in the file")
        case .unusable(let reason): Finding("storage servers", .fail, reason)
        case .oxend(let address): Finding("storage servers", .ok, "from the oxend at \(address)")
        }
    }
}
