import PushNode
import Delivery
import NodeAPI
import Core
import StatusServer

/// Findings on a gorush server.
extension NodeChecks {
    /// Certificates that renew themselves do so at a third of their lifetime, 30 days for those of 90.
    private static let certificateDays = 14

    static func gorush(_ endpoint: AdminAPI.InspectedGorush, _ facts: DoctorFacts) -> [Finding] {
        let name = endpoint.rule.name
        guard let gorush = endpoint.inspection else { return [Finding(name, .fail, endpoint.problem ?? "not inspected")] }
        guard let status = gorush.healthStatus else {
            let remedy =
                gorush.isUntrusted == true
                ? "renew the certificate of gorush, or of the proxy before it, give its authority by --gorush-ca, or write http:// if there is no TLS at this port"
                : "check that gorush runs, and that --gorush is its URL"
            return [Finding(name, .fail, gorush.problem ?? "no answer", remedy: remedy)]
        }
        var statistics: RegistrationStatistics?
        if case .inspected(_, let found, _, _) = facts.database { statistics = found }
        return [answer(name, of: gorush, status: status), post(gorush.dryPost, of: name)]
            + (gorush.configuration.map {
                [platforms($0, statistics, of: endpoint.rule), verdicts($0, takesFeedback: facts.takesFeedback, of: name)]
            } ?? [
                Finding("\(name) setup", .ok, "unknown: its /api/config is not accessible, which is recommended")
            ])
    }

    private static func answer(_ name: String, of gorush: GorushInspection, status: Int) -> Finding {
        let version = gorush.version.map { "version \($0)" } ?? "version unknown"
        if (200..<300).contains(status) {
            guard let days = gorush.certificateDaysLeft, days < certificateDays else { return Finding(name, .ok, "answers, \(version)") }
            return Finding(
                name, .warn, "its certificate expires in \(days) days, \(version)",
                remedy: "renew the certificate of gorush, or of the proxy before it")
        }
        return Finding(name, .warn, "answers \(status) to /healthz, \(version)", remedy: "see gorush's log, and that of a proxy before it")
    }

    static func post(_ post: GorushInspection.DryPost, of gorush: String = "gorush") -> Finding {
        let name = "\(gorush) post"
        switch post {
        case .understood: return Finding(name, .ok, "a post would be accepted (nothing was delivered)")
        case .failed(let reason): return Finding(name, .fail, reason, remedy: "see gorush's log")
        case .otherServer:
            return Finding(
                name, .fail, "the server at this URL did not answer like gorush", remedy: "check --gorush: its path comes before /api/push")
        case .status(401), .status(403), .status(407):
            return Finding(name, .fail, "this node may not post there", remedy: "check the options for gorush's credentials")
        case .status(429), .status(500...):
            return Finding(name, .fail, "gorush is overloaded or failing", remedy: "see gorush's log, and that of a proxy before it")
        case .status(let status):
            return Finding(name, .fail, "status \(status): there is no gorush at this URL", remedy: "check --gorush")
        }
    }

    private static func platforms(
        _ setup: GorushInspection.Configuration, _ statistics: RegistrationStatistics?, of rule: EndpointRule
    ) -> Finding {
        let name = "\(rule.name) setup"
        let all = [
            (Platform.apn, "APN", setup.isAPNEnabled, statistics?.apn ?? 0, "ios"),
            (.firebase, "Firebase", setup.isFirebaseEnabled, statistics?.firebase ?? 0, "android"),
        ]
        let platforms = all.filter { rule.platforms?.contains($0.0) ?? true }.map { ($0.1, $0.2, $0.3, $0.4) }
        let disabled = platforms.filter { $0.1 == false }
        if let hit = disabled.first(where: { $0.2 > 0 }) {
            return Finding(
                name, .fail, "\(hit.0) is disabled there, and \(hit.2) installations use it: their notifications are lost",
                remedy: "set \(hit.3).enabled in gorush's configuration")
        }
        if let off = disabled.first {
            return Finding(
                name, .warn, "\(disabled.map(\.0).joined(separator: " and ")) disabled there",
                remedy: "set \(off.3).enabled in gorush's configuration, if there will be such devices")
        }
        return Finding(name, .ok, "\(platforms.map(\.0).joined(separator: " and ")) enabled")
    }

    private static func verdicts(_ setup: GorushInspection.Configuration, takesFeedback: Bool, of gorush: String) -> Finding {
        let name = "\(gorush) verdicts"
        switch (setup.isSync == true, setup.hasFeedbackHook, takesFeedback) {
        case (true, false, _): return Finding(name, .ok, "core.sync: its replies report dead tokens")
        case (false, true, true): return Finding(name, .ok, "its feedback hook reports dead tokens")
        case (true, true, _):
            return Finding(
                name, .warn, "core.sync and the feedback hook are both enabled", remedy: "disable one of them in gorush's configuration")
        case (false, true, false):
            return Finding(name, .warn, "it has a feedback hook, but this node serves no /feedback", remedy: "set --feedback-secret-file")
        case (false, false, _):
            return Finding(
                name, .warn, "neither core.sync nor a feedback hook: dead tokens are never detected",
                remedy: "set core.sync: true, or core.feedback_hook_url, in gorush's configuration")
        }
    }
}
