import Logging
import Synchronization
import Waku

/// By which of a node's two calls to publish.
///
///     lightpush ──(not mounted)──▶ relay only ──(time passed, or the node is back)──▶ lightpush
///
/// Lightpush tells whether the message reached a peer, relay doesn't: so it comes first where the node serves it.
struct PublishRoute {
    private var missingUntil: Duration?
    /// After which a node that did not serve lightpush is asked again.
    static let pause = Duration.seconds(60)

    mutating func triesLightpush(at now: Moment) -> Bool {
        if let missingUntil, now.uptime < missingUntil { return false }
        missingUntil = nil
        return true
    }

    mutating func lightpushIsMissing(at now: Moment) {
        missingUntil = now.uptime + Self.pause
    }

    /// Perhaps with another configuration.
    mutating func nodeIsBack() {
        missingUntil = nil
    }
}

/// Publishes through one node.
final class NwakuPublisher: Sendable {
    private let api: NwakuAPI
    private let logger: Logger
    private let route = Mutex(PublishRoute())

    init(api: NwakuAPI, logger: Logger) {
        self.api = api
        self.logger = logger
    }

    func nodeIsBack() {
        route.withLock { $0.nodeIsBack() }
    }

    func publish(_ message: WakuMessage, on topic: PubsubTopic) async throws(RelayError) {
        if let flaw = message.flaw { throw RelayError(code: .refused, message: flaw) }
        if route.withLock({ $0.triesLightpush(at: .now()) }) {
            do {
                try await api.push(message, on: topic)
                return
            } catch {
                if error.code == .status(413) { throw RelayError(code: .refused, message: error.message) }
                if error.code == .status(404) || error.code == .status(503) {
                    route.withLock { $0.lightpushIsMissing(at: .now()) }
                }
                logger.debug("lightpush failed, publishing by relay", metadata: ["node": "\(api.address)", "reason": "\(error)"])
            }
        }
        do {
            try await api.publish(message, on: topic)
        } catch {
            throw RelayError(code: Self.isFinal(error) ? .refused : .unavailable, message: error.message)
        }
    }

    /// Whether the node would answer the same next time. 400 stands for both: too large, and not (or not yet again) subscribed.
    private static func isFinal(_ error: NwakuAPIError) -> Bool {
        switch error.code {
        case .status(413): true
        case .status(400): !error.message.lowercased().contains("subscribed")
        default: false
        }
    }
}
