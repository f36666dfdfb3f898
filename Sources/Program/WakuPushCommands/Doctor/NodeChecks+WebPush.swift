import NodeAPI
import NodeMetrics
import PushNode

/// Findings on Web Push.
extension NodeChecks {
    /// The daemon's own, if it has Web Push.
    static func webPush(_ daemon: NodeStatus?) -> [Finding] {
        (daemon?.findings ?? []).filter { ["web push", "web push keys"].contains($0.check) }
    }

    static func webPushSettings(key: String, contact: String) -> Finding {
        Finding("web push settings", .ok, "VAPID public key \(key), contact \(contact)")
    }

    static func webPushSettings(problem: String) -> Finding { Finding("web push settings", .fail, problem) }

    static func webPushTest(_ tested: AdminAPI.WebPushTested) -> Finding {
        let check = "web push test"
        guard let outcome = tested.outcome.flatMap({ WebPushAnswerLabel(rawValue: $0) }) else {
            return Finding(check, .fail, tested.problem ?? "nothing was posted")
        }
        let reason = tested.reason ?? "unknown"
        switch outcome {
        case .accepted: return Finding(check, .ok, "accepted by the push service with status \(tested.status ?? 201)")
        case .gone:
            return Finding(
                check, .fail, "the push service does not know the subscription: \(reason)",
                remedy: "subscribe again, and register the new subscription")
        case .keyRefused:
            return Finding(
                check, .fail, "the push service does not accept the VAPID key: \(reason)",
                remedy: "check that the subscription was made for this key, or give its key by --web-push-former-key; check the clock")
        case .later: return Finding(check, .warn, "the push service is temporarily unavailable: \(reason)", remedy: "try again later")
        case .unanswered:
            return Finding(
                check, .fail, "no answer: \(reason)",
                remedy: "check DNS and the firewall; for a push service of your own, --web-push-allow and --web-push-ca")
        case .refused: return Finding(check, .fail, "the push service refuses the message: \(reason)")
        }
    }
}
