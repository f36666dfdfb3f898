package import Foundation

/// An operation that the audit log records: it reads secrets or changes something.
package enum AuditedAction: String, Codable, CaseIterable, Sendable {
    case drain
    case undrain = "drain --undo"
    case logLevel = "log-level"
    case outboxRetry = "outbox retry"
    case outboxDrop = "outbox drop"
    case registrationsChanged = "registrations changed"
    case testPush = "test-push"
    case registrationsReveal = "registrations show --reveal"
    case registrationsFind = "registrations find --token-file"
    case registrationsRemove = "registrations remove"
    case registrationsExport = "registrations export"
    case registrationsImport = "registrations import"
    case recordsReveal = "records show --reveal"
    case recordsRemove = "records remove"
    case subscriptionsReveal = "subscriptions show --reveal"
    case backup
    case restore
    case importStatusGo = "import status-go"
    case migrate
    case rotateStorageKey = "rotate-storage-key"
}

/// A line of the audit log. Contains no secret, and nothing of the request but its kind.
package struct AuditRecord: Codable, Hashable, Sendable {
    package enum Source: String, Codable, Sendable {
        /// The admin socket of the daemon; the user is that of its peer.
        case socket
        /// A command that opened the store itself; the user is that of its process.
        case command
    }

    package enum Result: String, Codable, Sendable {
        /// Written before the operation starts.
        case begun
        case succeeded
        case failed
    }

    /// Precise to a second.
    package let time: Date
    /// The numeric id of the user.
    package let user: UInt32
    package let source: Source
    package let action: AuditedAction
    package let result: Result

    package init(time: Date, user: UInt32, source: Source, action: AuditedAction, result: Result) {
        self.time = time
        self.user = user
        self.source = source
        self.action = action
        self.result = result
    }
}
