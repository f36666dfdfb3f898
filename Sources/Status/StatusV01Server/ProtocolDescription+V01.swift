package import NodeAPI
import NodeMetrics
import Storage

extension ProtocolDescription {
    /// Version 0.1 of Status' service.
    package static let statusV01 = ProtocolDescription(
        name: StatusPushV01.protocolName, number: V01Storage.protocolNumber, part: V01Storage.part, metrics: [.statusV01],
        makeDeliverySource: { V01DeliverySource($0, apnsTopic: "") },
        storedCounts: { (store) throws(StoreError) in
            let figures = try store.read(Records.figures())
            let isShown = figures.records + figures.devices.unregistered > 0
            func count(_ key: String, name: String, count: Int) -> StoredCount {
                StoredCount(key: key, name: isShown ? name : nil, count: count)
            }
            return [
                count("v01Records", name: "v0.1 records", count: figures.records),
                count("v01Devices", name: "v0.1 devices", count: figures.devices.total),
                count("v01Tombstones", name: "v0.1 tombstones", count: figures.devices.unregistered),
            ]
        })
}
