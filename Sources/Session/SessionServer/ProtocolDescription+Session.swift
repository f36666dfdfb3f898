import Foundation
package import NodeAPI
import NodeMetrics
import Storage

extension ProtocolDescription {
    /// Session's push server.
    package static let session = ProtocolDescription(
        name: SessionPush.protocolName, number: SessionStorage.protocolNumber, part: SessionStorage.part, metrics: [.session],
        prescribesContent: true, makeDeliverySource: { SessionDeliverySource($0, apnsTopic: "") },
        storedCounts: { (store) throws(StoreError) in
            let total = try store.read(Subscriptions.figures(at: Int64(Date.now.timeIntervalSince1970))).total
            return [StoredCount(key: "sessionSubscriptions", name: total > 0 ? "Session subscriptions" : nil, count: total)]
        })
}
