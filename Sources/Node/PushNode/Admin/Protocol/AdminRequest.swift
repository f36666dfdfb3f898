import HTTPTypes

/// The calls of the admin socket, by path. See ``AdminAPI`` for their bodies.
///
/// Each must say here whether it is audited: the switches have no default.
enum AdminRequest: String, CaseIterable, Sendable {
    case status
    case health
    case peers
    case limits
    case drain
    case undrain = "drain/undo"
    case logLevel = "log-level"
    case outboxRetry = "outbox/retry"
    case outboxDrop = "outbox/drop"
    case registrationsChanged = "registrations/changed"
    case selfTest = "self-test"
    case setup
    case testPush = "gorush/test-push"
    case inspectGorush = "gorush/inspect"
    case testWebPush = "web-push/test"

    /// - Parameter path: with or without leading and trailing slashes.
    init?(path: String) {
        self.init(rawValue: path.split(separator: "/").joined(separator: "/"))
    }

    var method: HTTPRequest.Method {
        switch self {
        case .status, .health, .peers, .limits, .setup: .get
        case .drain, .undrain, .logLevel, .outboxRetry, .outboxDrop, .registrationsChanged, .selfTest, .testPush, .inspectGorush,
            .testWebPush:
            .post
        }
    }

    /// nil for calls that neither read secrets nor change something.
    var audited: AuditedAction? {
        switch self {
        case .status, .health, .peers, .limits, .selfTest, .setup, .inspectGorush: nil
        case .drain: .drain
        case .undrain: .undrain
        case .logLevel: .logLevel
        case .outboxRetry: .outboxRetry
        case .outboxDrop: .outboxDrop
        case .registrationsChanged: .registrationsChanged
        case .testPush, .testWebPush: .testPush
        }
    }
}
