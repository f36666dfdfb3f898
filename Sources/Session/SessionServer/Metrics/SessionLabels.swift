package import NodeMetrics
package import Core
package import SessionProtocol

extension ProtocolLabel {
    package static let session = ProtocolLabel(SessionPush.protocolName)
}

package enum SessionEndpointLabel: String, MetricLabel {
    package static let labelName = "endpoint"
    case subscribe
    case unsubscribe
}

/// The result of a request.
package enum SessionAnswerLabel: String, MetricLabel {
    package static let labelName = "answer"
    case added
    case updated
    case removed
    case notSubscribed = "not_subscribed"
    case badInput = "bad_input"
    case serviceNotAvailable = "service_not_available"
    case serviceTimeout = "service_timeout"
    case error
    case internalError = "internal_error"

    init(_ answer: RequestAnswer) {
        self =
            switch answer {
            case .added: .added
            case .updated: .updated
            case .removed(true): .removed
            case .removed(false): .notSubscribed
            case .failed(let error):
                switch error.code {
                case .badInput: .badInput
                case .serviceNotAvailable: .serviceNotAvailable
                case .serviceTimeout: .serviceTimeout
                case .error: .error
                case .internalError: .internalError
                }
            }
    }
}

package enum SessionOnionLabel: String, MetricLabel {
    package static let labelName = "result"
    case answered
    case malformed
    case undecryptable
    case tooLarge = "too_large"

    init(_ error: OnionError) {
        self =
            switch error {
            case .malformed: .malformed
            case .undecryptable: .undecryptable
            case .tooLarge: .tooLarge
            }
    }
}

extension SessionDropReason: MetricLabel {
    package static let labelName = "reason"

    var inWords: String { rawValue.split(separator: "_").joined(separator: " ") }
}

extension MonitorRefusal: MetricLabel {
    package static let labelName = "reason"
}

package enum SessionConnectionLabel: String, MetricLabel {
    package static let labelName = "event"
    case made
    /// Includes failed attempts.
    case ended
}

extension PushService: MetricLabel {
    package static let labelName = "service"
    package var labelValue: String { rawValue.replacing("-", with: "_") }
}

package enum SessionReachLabel: String, MetricLabel {
    package static let labelName = "state"
    case known
    case connected
}
