import Logging
import Synchronization
import Core
import Waku

/// Publishes through one node and looks up publications in its store.
///
/// Lightpush reports whether the message reached a peer, relay does not: so lightpush is tried first if the node serves it.
final class NwakuPublisher: Sendable {
    private struct Services {
        var lightpush = OptionalService()
        var store = OptionalService()
    }

    private let api: NwakuAPI
    private let logger: Logger
    private let services = Mutex(Services())

    init(api: NwakuAPI, logger: Logger) {
        self.api = api
        self.logger = logger
    }

    func noteReconnection() {
        services.withLock { services in
            services.lightpush.noteReconnection()
            services.store.noteReconnection()
        }
    }

    func publish(_ message: WakuMessage, on topic: PubsubTopic) async throws(RelayError) -> Publication {
        if let flaw = message.flaw { throw RelayError(code: .refused, message: flaw) }
        let now = Moment.now()
        let (triesLightpush, canBeLookedUp) = services.withLock { ($0.lightpush.isAvailable(at: now), $0.store.isAvailable(at: now)) }
        var failure: NwakuAPIError?
        if triesLightpush {
            do {
                let peerCount = try await api.push(message, on: topic)
                return (peerCount ?? 0) >= 1 ? .confirmed : .unconfirmed(canBeLookedUp: canBeLookedUp)
            } catch {
                // A cancellation says nothing about the node.
                if Task.isCancelled { throw RelayError(code: .unavailable, message: "publishing was cancelled") }
                // The node has it from a peer, or relayed it when it was pushed before and the answer was late. nwaku answers 500 then.
                if error.message.contains("already-seen") { return .unconfirmed(canBeLookedUp: canBeLookedUp) }
                if error.code == .status(413) { throw RelayError(code: .refused, message: error.message) }
                if Self.isLightpushMissing(error) { services.withLock { $0.lightpush.noteMissing(at: .now()) } }
                failure = error
                logger.debug("lightpush failed; publishing by relay", metadata: ["node": "\(api.address)", "reason": "\(error)"])
            }
        }
        do {
            try await api.publish(message, on: topic)
            return .unconfirmed(canBeLookedUp: canBeLookedUp)
        } catch {
            // The node can publish on the topic by lightpush alone, or at present: one slow answer must not end that.
            guard let failure, failure.code != .status(404), Self.isUnsubscribed(error) else { throw Self.relayError(error) }
            services.withLock { $0.lightpush.noteReconnection() }
            throw Self.relayError(failure)
        }
    }

    func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        do {
            let page = try await api.query(StoreQuery(hashes: hashes, includesMessages: false), timeout: .seconds(5))
            return Set(page.hashes)
        } catch {
            guard Self.isStoreMissing(error) else { throw RelayError(code: .unavailable, message: error.message) }
            services.withLock { $0.store.noteMissing(at: .now()) }
            throw RelayError(code: .refused, message: error.message)
        }
    }

    /// Whether to stop using lightpush for a while: a service that does not answer in time would delay every message.
    private static func isLightpushMissing(_ error: NwakuAPIError) -> Bool {
        [.status(404), .status(503), .unreachable, .tooSlow].contains(error.code)
    }

    /// Whether there is no store, or one without support for such queries.
    private static func isStoreMissing(_ error: NwakuAPIError) -> Bool {
        [.status(400), .status(404), .status(412), .status(501)].contains(error.code)
    }

    /// Refused if the node would refuse the message again. Status 400 means either that it is too large, or that the node is not subscribed.
    private static func relayError(_ error: NwakuAPIError) -> RelayError {
        let isFinal = error.code == .status(413) || error.code == .status(400) && !isUnsubscribed(error)
        return RelayError(code: isFinal ? .refused : .unavailable, message: error.message)
    }

    /// Whether nobody subscribed the node to the topic, as perhaps not yet after a restart.
    private static func isUnsubscribed(_ error: NwakuAPIError) -> Bool {
        error.code == .status(400) && error.message.lowercased().contains("subscribed")
    }
}
