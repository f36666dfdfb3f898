import Dispatch
import Logging
import Core
import SessionProtocol
import Synchronization

extension SubscriptionMonitor {
    /// Connects to storage servers until the task is cancelled; then says BYE to them, and hands over what they reported. Once.
    ///
    /// - Throws: ``StorageServerFile/Failure`` when there is a nodes file that can't be used.
    package func run() async throws {
        let first: StorageServerList? = if case .file(let path) = configuration.source { try await readFile(path) } else { nil }
        let client = OxenMQClient(library: library, configuration: configuration.connections) { [weak self] connection, event in
            self?.handle(connection, event) ?? .goOn
        }
        self.client.withLock { $0 = client }
        // A task of its own: what is accepted is handed over when this one is cancelled, too.
        let delivery = Task { await handOver() }
        oxend?.useServers { [weak self] in self?.update($0) }
        if let first { update(first) }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.readEntries() }
            if let oxend { group.addTask { await oxend.run() } }
        }
        await client.shutDown()
        self.client.withLock { $0 = nil }
        messageAdded.finish()
        await delivery.value
    }

    // MARK: The map

    /// SIGHUP: reads the nodes file again, or asks oxend. A file that can't be used changes nothing, and is logged.
    package func reloadServers() {
        guard case .file(let path) = configuration.source else {
            oxend?.want()
            return
        }
        queue.async { [self] in
            do throws(StorageServerFile.Failure) {
                update(try StorageServerFile.read(path))
            } catch {
                logger.error("nodes file not used: nothing changed", metadata: ["path": "\(path)", "reason": "\(error.reason)"])
            }
        }
    }

    private func readFile(_ path: String) async throws -> StorageServerList {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try StorageServerFile.read(path) }) }
        }
    }

    /// There is a map.
    private func update(_ list: StorageServerList) {
        queue.async { [self] in
            change { state, now in
                state.monitor.update(list.servers, at: now)
                state.mapReceivedAt = now
                let figures = state.monitor.figures
                logger.info(
                    "storage servers listed",
                    metadata: [
                        "servers": "\(figures.knownServers)", "swarms": "\(figures.knownSwarms)", "left_out": "\(list.leftOutCount)",
                    ])
                if figures.knownServers > configuration.connections.maximumConnections {
                    logger.warning(
                        "limit of open files too low to connect to all storage servers",
                        metadata: ["connections": "\(configuration.connections.maximumConnections)"])
                }
            }
        }
    }

    // MARK: Requests

    /// Entries that are read at once, unless a request has more.
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
                let entries = try await entries.entries(of: ids)
                for request in batch { send(request, entries) }
                return
            } catch {
                if !isFailureLogged { logger.error("subscriptions can't be read", metadata: ["reason": "\(error)"]) }
                isFailureLogged = true
                // Connections that wait for too long are ended and made again by the state machine.
                try? await Task.sleep(for: configuration.retryInterval)
            }
        }
    }

    private func send(_ request: RequestQueue.Request, _ entries: [SubscriptionID: MonitorEntry]) {
        // Each has its place in the reply: another one stands in for those that are gone.
        let known = request.ids.compactMap { entries[$0] }
        guard let substitute = known.first else {
            // All are gone: there is nothing to ask, and nothing to wait for.
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
        client.request(.init(request.connection), MonitorEntry.command, tag: request.tag.bytes, body: body)
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
