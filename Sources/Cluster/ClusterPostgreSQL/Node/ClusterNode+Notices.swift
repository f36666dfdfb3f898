import NodeAPI
import Cluster
import Delivery
import Logging
import Core
import Storage
import Synchronization
import WakuCrypto

/// Notifications between nodes through the database (`LISTEN` and `NOTIFY`). They only save time: the changes are also found by periodic reads. The
/// exception is the usage of shared limits, which is sent in no other way: see `recordLimitUsage(_:)`.
extension ClusterNode {
    private static let outboxChannel = "outbox"
    private static let acceptedChannel = "accepted"
    private static let registrantPrefix = "registrant_"
    private static let listenTimeout = Duration.seconds(60)
    private static let endedLimit = 100_000
    private static let listenPause = Duration.seconds(1)
    /// Maximum number of pages of logged changes in a read; with more changes, all registrants are loaded again.
    private static let changePages = 10

    /// - Parameter registrants: see ``NodeProtocol/registrants``.
    static func notices(_ registrants: [ProtocolNumber: (table: Table, column: Column)]) -> [Notice] {
        [
            Notice(outboxChannel, of: DeliveryStorage.deviceColumn, in: DeliveryStorage.outboxTable),
            Notice(acceptedChannel, of: DeliveryStorage.deliveryColumn, in: DeliveryStorage.acceptedTable),
        ]
            + registrants.sorted { $0.key.rawValue < $1.key.rawValue }.map { number, place in
                Notice(registrantPrefix + "\(number.rawValue)", of: place.column, in: place.table, includesUpdates: true, isLogged: true)
            }
    }

    /// Receives other nodes' notifications. Runs until cancelled.
    func listen() async {
        let listener = database.listener(on: notices.map(\.channel) + [Self.limitsChannel])
        await withTaskCancellationHandler {
            while !Task.isCancelled {
                let result = await onThread(listenerThread) { () throws(StoreError) in try listener.next(timeout: Self.listenTimeout) }
                switch result {
                case .success(.reconnected):
                    // Notifications may have been missed without a connection: scan all partitions, and load all registrants again.
                    state.withLock { $0.toScan = Set(0..<configuration.times.partitionCount) }
                    deliveryWakeUp.signal()
                    while await attached?.reload() == false, (try? await Task.sleep(for: Self.listenPause)) != nil {}
                case .success(.notified(let payloads)):
                    recordLimitUsage(payloads[Self.limitsChannel] ?? [])
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
        var reader = ChangeReader(configuration.times, at: .now)
        var isToReload = false
        while (try? await Task.sleep(for: configuration.times.changeInterval)) != nil {
            guard let (readAt, isComplete) = await takeChanges(since: reader.start) else { continue }
            if reader.read(at: readAt, isComplete: isComplete, now: .now) { isToReload = true }
            if isToReload, await attached?.reload() != false { isToReload = false }
        }
    }

    /// - Returns: the time of the first read, in microseconds since 1970, and whether all changes were read; nil if a read failed.
    private func takeChanges(since start: Int64?) async -> (readAt: Int64, isComplete: Bool)? {
        var place: LoggedChanges.Place?
        var readAt: Int64?
        for _ in 0..<Self.changePages {
            let result = await onThread(maintenanceThread) { [database, place] () throws(StoreError) in
                try database.changes(since: start, after: place)
            }
            guard case .success(let changes) = result else { return nil }
            take(changes.payloads)
            let first = readAt ?? changes.readAt
            guard let next = changes.next else { return (first, true) }
            (readAt, place) = (first, next)
        }
        return readAt.map { ($0, false) }
    }

    /// - Parameter payloads: notification payloads, by channel.
    private func take(_ payloads: [String: [String]]) {
        for (channel, names) in payloads where channel.hasPrefix(Self.registrantPrefix) {
            guard let number = Int64(channel.dropFirst(Self.registrantPrefix.count)) else { continue }
            for name in Set(names).compactMap({ bytes(hex: $0) }) {
                attached?.registered(ProtocolNumber(rawValue: number), name)
            }
        }
        let partitions = (payloads[Self.outboxChannel] ?? []).compactMap { Int64($0) }.map(partition(ofRow:))
        let ended = (payloads[Self.acceptedChannel] ?? []).compactMap { bytes(hex: $0) }.compactMap { DeliveryID(bytes: $0) }
        guard !partitions.isEmpty || !ended.isEmpty else { return }
        state.withLock { state in
            state.toScan.formUnion(partitions)
            // Deliveries over the limit are found by the periodic look-up of all awaited ones.
            if state.ended.count < Self.endedLimit { state.ended.formUnion(ended) }
        }
        deliveryWakeUp.signal()
    }
}
