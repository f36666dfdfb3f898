import Core
import Delivery
import NodeAPI
import NodeMetrics
import Storage
import Synchronization
import WakuCrypto

/// Receives other nodes' notifications through the database, and reads the changes that they logged.
struct NoticeReception: Sendable {
    private static let listenTimeout = Duration.seconds(60)
    private static let endedLimit = 100_000
    private static let listenPause = Duration.seconds(1)
    /// Maximum number of pages of logged changes in a read; with more changes, all registrants are loaded again.
    private static let changePages = 10

    let node: ClusterNode
    let duties: ClusterDuties

    /// Receives other nodes' notifications. Runs until cancelled.
    func listen() async {
        let listener = node.database.noticeListener(on: node.notices.map(\.channel) + [ClusterDatabase.partitionsChannel])
        await withTaskCancellationHandler {
            while !Task.isCancelled {
                switch await listener.next(timeout: Self.listenTimeout, on: node.listenerThread) {
                case .success(.reconnected):
                    // Notifications may have been missed without a connection: the next scan, within a second, is of all partitions, and all
                    // registrants are loaded again.
                    node.state.withLock { $0.toScan = Set(0..<node.configuration.times.partitionCount) }
                    while await duties.reload() == false, (try? await Task.sleep(for: Self.listenPause)) != nil {}
                case .success(.notified(let payloads)):
                    if payloads[ClusterDatabase.partitionsChannel] != nil { node.hastenHeartbeat() }
                    take(payloads)
                case .success(.closed): return
                case .failure: try? await Task.sleep(for: Self.listenPause)
                }
            }
        } onCancel: {
            listener.close()
        }
    }

    /// Reads the logged changes periodically, because a node misses notifications while its connection hangs unnoticed. Runs until cancelled.
    func readChanges() async {
        var reader = ChangeReader(node.configuration.times, at: .now)
        var isToReload = false
        while (try? await Task.sleep(for: node.configuration.times.changeInterval)) != nil {
            guard let (readAt, isComplete) = await takeChanges(since: reader.start) else { continue }
            if reader.read(at: readAt, isComplete: isComplete, now: .now) { isToReload = true }
            if isToReload, await duties.reload() != false { isToReload = false }
        }
    }

    /// - Returns: the time of the first read, in microseconds since 1970, and whether all changes were read; nil if a read failed.
    private func takeChanges(since start: Int64?) async -> (readAt: Int64, isComplete: Bool)? {
        var place: LoggedChanges.Place?
        var readAt: Int64?
        for _ in 0..<Self.changePages {
            let result = await node.onThread(node.maintenanceThread) { [place] database throws(StoreError) in
                try database.changes(since: start, after: place, limit: ClusterDatabase.changeLimit)
            }
            let changes: LoggedChanges
            do throws(StoreError) {
                changes = try result.get()
            } catch {
                node.errors.log("failed to read logged changes", reason: error.message)
                return nil
            }
            take(changes.payloads)
            let first = readAt ?? changes.readAt
            guard let next = changes.next else { return (first, true) }
            (readAt, place) = (first, next)
        }
        return readAt.map { ($0, false) }
    }

    /// - Parameter payloads: notification payloads, by channel.
    private func take(_ payloads: [String: [String]]) {
        for (channel, names) in payloads where channel.hasPrefix(ClusterNode.registrantPrefix) {
            guard let number = Int64(channel.dropFirst(ClusterNode.registrantPrefix.count)) else { continue }
            for name in Set(names).compactMap({ bytes(hex: $0) }) {
                duties.registered(ProtocolNumber(rawValue: number), name)
            }
        }
        let rows = (payloads[ClusterNode.outboxChannel] ?? []).compactMap { Int64($0) }
        let partitions = rows.map(node.configuration.times.partition(ofRow:))
        let ended = (payloads[ClusterNode.acceptedChannel] ?? []).compactMap { bytes(hex: $0) }.compactMap { DeliveryID(bytes: $0) }
        guard !partitions.isEmpty || !ended.isEmpty else { return }
        node.state.withLock { state in
            state.toScan.formUnion(partitions)
            // Deliveries over the limit are found by the periodic look-up of all awaited ones.
            if state.ended.count < Self.endedLimit { state.ended.formUnion(ended) }
        }
        node.deliveryWakeUp.signal()
    }
}
