import Dispatch
import Logging
import Core
import Synchronization

extension SubscriptionMonitor {
    /// Connects to storage servers until the task is cancelled; then sends BYE, and passes the remaining messages to the receiver. May be called
    /// once.
    ///
    /// - Throws: ``StorageServerFile/Failure`` if the nodes file is unusable.
    package func run() async throws {
        let first: StorageServerList? = if case .file(let path) = configuration.source { try await readFile(path) } else { nil }
        let client = connect(configuration.connections) { [weak self] connection, event in
            self?.handle(connection, event) ?? .proceed
        }
        self.client.withLock { $0 = client }
        // A separate task, so that accepted messages reach the receiver even after cancellation.
        let delivery = Task { await handOver() }
        if let first { update(first) }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.readEntries() }
            if let oxend { group.addTask { await oxend.run { [weak self] in self?.update($0) } } }
        }
        await client.shutDown()
        self.client.withLock { $0 = nil }
        messageAdded.finish()
        await delivery.value
    }

    // MARK: The map

    /// SIGHUP: reads the nodes file again, or requests the list from oxend. An unusable file is logged and changes nothing.
    package func reloadServers() {
        guard case .file(let path) = configuration.source else {
            oxend?.want()
            return
        }
        queue.async { [self] in
            do throws(StorageServerFile.Failure) {
                update(try StorageServerFile.read(path))
            } catch {
                logger.error(
                    "failed to reload the nodes file; nothing changed", metadata: ["path": "\(path)", "reason": "\(error.reason)"])
            }
        }
    }

    private func readFile(_ path: String) async throws -> StorageServerList {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try StorageServerFile.read(path) }) }
        }
    }

    /// Applies a new map.
    private func update(_ list: StorageServerList) {
        queue.async { [self] in
            change { state, now in
                state.monitor.update(list.servers, at: now)
                state.mapReceivedAt = now
                let figures = state.monitor.figures
                logger.info(
                    "storage servers listed",
                    metadata: [
                        "servers": .stringConvertible(figures.knownServers), "swarms": .stringConvertible(figures.knownSwarms),
                        "left_out": .stringConvertible(list.leftOutCount),
                    ])
                if let limit = connectionLimit(for: figures.knownServers) {
                    logger.warning(
                        "open file limit too low for connections to all storage servers",
                        metadata: ["connections": .stringConvertible(limit)])
                }
            }
        }
    }

    // MARK: Requests

    /// Number of entries read at once, unless a request has more.
    private static let readCount = 4096

    private func readEntries() async {
        for await _ in requestAdded {
            while !Task.isCancelled {
                let batch = requests.withLock { $0.next(maximumCount: Self.readCount) }
                guard !batch.isEmpty else { break }
                await ask(batch)
            }
        }
    }

    private func ask(_ batch: [RequestQueue.Request]) async {
        let ids = Array(Set(batch.lazy.flatMap(\.ids)))
        var isFailureLogged = false
        while !Task.isCancelled {
            do {
                let (entries, ended) = try await entries.entries(of: ids)
                for id in ended { apply(.remove(id)) }
                for request in batch { send(request, entries) }
                let missing = ids.filter { entries[$0] == nil }
                queue.async {
                    self.change { state, now in
                        for request in batch { state.monitor.sent(request.tag, at: now) }
                        state.monitor.askLater(missing, at: now)
                    }
                }
                return
            } catch {
                if !isFailureLogged { logger.error("failed to read subscriptions", metadata: ["reason": "\(error)"]) }
                isFailureLogged = true
                try? await Task.sleep(for: configuration.retryInterval)
            }
        }
    }

    private func send(_ request: RequestQueue.Request, _ entries: [SubscriptionID: MonitorEntry]) {
        // The reply lists outcomes by position, so another entry replaces the one of a subscription that has ended or can't be read.
        let known = request.ids.compactMap { entries[$0] }
        guard let substitute = known.first else {
            // There is nothing to ask for: no request is sent.
            queue.async {
                self.change { state, now in
                    let outcomes = [MonitorOutcome](repeating: .success, count: request.ids.count)
                    state.monitor.replied(request.tag, outcomes, at: now)
                }
            }
            return
        }
        let all = known.count == request.ids.count ? known : request.ids.map { entries[$0] ?? substitute }
        guard let body = MonitorEntry.body(of: all), let client = client.withLock({ $0 }) else { return }
        count(.asked(all.count))
        client.request(request.connection, MonitorEntry.command, tag: request.tag.bytes, body: body)
    }

    // MARK: Messages

    private func handOver() async {
        for await _ in messageAdded {
            while true {
                let (batch, resumed) = messages.withLock { $0.next() }
                resume(resumed)
                guard !batch.isEmpty else { break }
                await receiver.take(batch)
            }
        }
        await receiver.settle()
    }
}
