import NIOSupport
import Delivery
import HTTPService
import NodeAPI
import Logging
import Storage
import Synchronization

/// The endpoints for operators: health, metrics, status page and admin socket.
extension NodeService {
    func serveHealth() async throws {
        guard let address = configuration.httpAddress else { return }
        let endpoint = configuration.feedbackSecret.map { _ in
            FeedbackEndpoint(
                secret: { self.feedbackSecret.withLock(\.self) }, feedback: delivery.feedback, counters: base.counters)
        }
        let lookup = PageSearch(
            store: store, protocols: base.protocols, ids: NotificationIDCipher(identity: configuration.identity))
        let search = SearchEndpoint { question async throws(StoreError) in try await lookup.lines(for: question) }
        let server = HealthServer(
            address: address, hostNames: configuration.httpHosts, webPushKey: configuration.webPush?.publicKey,
            feedback: endpoint, obstacles: { self.obstacles },
            metrics: { await self.observation.gauges.exposition(isReady: self.obstacles.isEmpty) },
            status: { await self.observation.pageSource.status(self.findings) }, search: search,
            bound: { port in self.boundPort.withLock { $0 = port } }, logger: base.logger)
        do {
            try await server.run()
        } catch {
            throw NodeError(message: "can't listen on \(address): \(ListenFailure.reason(error)) Choose another with --http")
        }
    }

    /// Why the node is not ready; empty if it is.
    package var obstacles: [String] {
        findings.filter { $0.verdict == .fail }.map { "\($0.check): \($0.text)" }
    }

    /// Serves the admin socket. The node runs without it if that fails.
    func serveAdmin() async {
        guard configuration.servesAdmin else { return }
        guard let socket = AdminSocket(in: configuration.dataPath) else {
            return base.logger.error("failed to serve the admin socket", metadata: ["reason": "the data folder can't be opened"])
        }
        do {
            try await AdminServer(
                node: self, socket: socket, audit: AuditLog(in: configuration.dataPath), logger: base.logger
            ).run()
        } catch {
            base.logger.error("failed to serve the admin socket", metadata: ["reason": "it can't be made in the data folder"])
        }
    }

    /// Checks liveness: returns once an empty batch of commands went through the store's writer and the delivery table's lock was free. A store
    /// that reports errors is alive, since the node continues without it. If the store or delivery hangs, this does not return.
    package func checkLiveness() async {
        await store.settle()
        _ = delivery.waitingCount
    }
}
