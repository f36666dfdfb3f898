import PushClient
import StatusProtocol
import WakuCrypto

/// A server's answer about the client's registration, in words.
struct RegistrationCheckRow: Encodable {
    let server: String
    let isHealthy: Bool
    let finding: String
    /// nil if no notification was requested.
    let ping: String?

    init(_ check: RegistrationCheck) {
        server = check.server.hex
        isHealthy = check.isHealthy
        finding =
            switch check.finding {
            case .matches(let version): "matches, version \(version)"
            case .notRegistered: "this device is not registered there; the client registers it again"
            case .otherVersion(let version, let expected) where version < expected:
                "the server has version \(version), older than \(expected); the client registers again: check the server"
            case .otherVersion(let version, let expected):
                "the server has version \(version), newer than \(expected): is a copy of this client's folder in use elsewhere?"
            case .otherToken: "the server has another access token; the client registers again"
            case .noAnswer(let error):
                error.code == .noAnswer
                    ? "no answer: the server is unreachable, or has no registration of this key (register --again)" : error.message
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
