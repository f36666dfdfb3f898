import PushNode
import NodeAPI

/// Findings on Session's push server: its files, and the daemon's findings on storage servers and services.
extension NodeChecks {
    /// Findings of the daemon that are listed here.
    private static let prefix = "session"

    static func session(_ facts: DoctorFacts) -> [Finding] {
        let session = facts.session
        guard session.isOn else {
            guard session.subscriptions > 0 else { return [] }
            return [
                Finding(
                    prefix, .warn, "off, but \(session.subscriptions) subscriptions are stored: nobody is notified",
                    remedy: "start the daemon with --session-http; without it they expire after 14 days")
            ]
        }
        return [onionKey(session.keyProblem), servers(session.servers)]
            + (facts.daemon?.findings.filter { $0.check.hasPrefix(prefix) } ?? [])
    }

    private static func onionKey(_ problem: String?) -> Finding {
        problem.map { Finding("onion key", .fail, $0) } ?? Finding("onion key", .ok, "read")
    }

    private static func servers(_ servers: DoctorFacts.Session.Servers) -> Finding {
        switch servers {
        case .file(0): Finding("storage servers", .fail, "the file has none", remedy: "check --session-nodes")
        case .file(let count): Finding("storage servers", .ok, "\(count) in the file")
        case .unusable(let reason): Finding("storage servers", .fail, reason)
        case .oxend(let address): Finding("storage servers", .ok, "from the oxend at \(address)")
        }
    }
}
