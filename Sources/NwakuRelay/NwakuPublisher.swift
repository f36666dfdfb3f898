import Logging
import Synchronization
import Waku

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
                // That says nothing about the node.
                if Task.isCancelled { throw RelayError(code: .unavailable, message: "publishing was cancelled") }
                if error.code == .status(413) { throw RelayError(code: .refused, message: error.message) }
                if Self.isMissing(error) { route.withLock { $0.lightpushIsMissing(at: .now()) } }
                logger.debug("lightpush failed, publishing by relay", metadata: ["node": "\(api.address)", "reason": "\(error)"])
            }
        }
        do {
            try await api.publish(message, on: topic)
        } catch {
            throw RelayError(code: Self.isFinal(error) ? .refused : .unavailable, message: error.message)
        }
    }

    /// Whether lightpush is not to be had for a while. One that does not answer in time would hold up every message.
    private static func isMissing(_ error: NwakuAPIError) -> Bool {
        [.status(404), .status(503), .unreachable].contains(error.code)
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
