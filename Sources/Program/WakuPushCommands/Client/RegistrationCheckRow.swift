import PushClient

/// A server's answer about the client's registration, in words.
struct RegistrationCheckRow: Encodable {
    let server: String
    let isHealthy: Bool
    let finding: String
    /// nil if no notification was requested.
    let ping: String?
    /// Whether the same check may succeed later.
    let passes: Bool

    private enum CodingKeys: CodingKey { case server, isHealthy, finding, ping }

    /// What is wrong: the failed notification of a registration that is.
    var problem: String {
        guard isMatching, let ping else { return finding }
        return "the registration \(finding), but the notification failed: \(ping)"
    }
    private let isMatching: Bool

    init(_ check: RegistrationCheck) {
        server = check.server.text
        isHealthy = check.isHealthy
        if case .matches = check.finding { isMatching = true } else { isMatching = false }
        passes =
            switch (check.finding, check.ping) {
            case (.noAnswer(let error), _), (_, .failed(let error)): error.code == .noAnswer || error.code == .notPublished
            case (_, .refused(let error)): error == .internalError
            case (_, .accepted), (_, nil): false
            }
        var refusal: String?
        if case .refused(let reason) = check.status { refusal = "the server refused the registration: \(reason.rawValue)" }
        finding =
            switch check.finding {
            case .matches(let version): "matches, version \(version)"
            case .notRegistered: "this device is not registered there; \(refusal ?? "the client registers it again")"
            case .otherVersion(let version, let expected) where version < expected:
                "the server has version \(version), older than \(expected); the client registers again: check the server"
            case .otherVersion(let version, let expected):
                "the server has version \(version), newer than \(expected): is a copy of this client's folder in use elsewhere?"
            case .otherToken: "the server has another access token; \(refusal ?? "the client registers again")"
            case .noAnswer(let error):
                error.code == .noAnswer ? "no answer: the server is unreachable" : error.message
            }
        ping = check.ping.map { ping in
            switch ping {
            case .accepted: "accepted"
            case .refused(let failure): "\(failure.name)"
            case .failed(let error): error.message
            }
        }
    }
}
