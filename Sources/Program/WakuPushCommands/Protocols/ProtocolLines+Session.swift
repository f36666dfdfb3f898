import Core
import Foundation
import SessionProtocol
import SessionServer
import StatusServer
import Storage

extension RegistrationsFile.Line {
    /// A subscription of Session.
    struct Subscription: Codable {
        let service: String
        /// An encoded `SubscriptionRecord`.
        let content: Data
        /// true or absent: whether gorush has accepted a notification for it. Absent in files of earlier releases.
        let wasDelivered: Bool?
    }

    /// The name of an ended subscription.
    struct UnsubscribedName: Codable {
        let name: Data
        let signedAt: Int64
        let expiresAt: Int64
        /// `Sealer.lookUpKeyMark` of the name. Absent in files of earlier releases.
        let key: Int64?
    }

    /// A `sig_ts` of Session that was ahead of the clock when it was received.
    struct AheadTime: Codable {
        let name: Data
        let kind: Int64
        let signedAt: Int64
        let arrivedAt: Int64
        /// `Sealer.lookUpKeyMark` of the name. Absent in files of earlier releases.
        let key: Int64?
    }
}

extension ProtocolLines {
    /// The names of ended subscriptions, subscriptions, and `sig_ts` values that were ahead of the clock.
    static let session = ProtocolLines(
        hasSeveralPlatforms: true,
        export: { store, filter, writer in
            func exportSubscriptions(of services: Set<PushService>) throws {
                var selected = SubscriptionFilter()
                selected.signedBefore = filter.changedBefore.map { $0.rawValue / 1_000_000_000 }
                selected.signedSince = filter.changedSince.map { $0.rawValue / 1_000_000_000 }
                let subscriptions = SessionServer.Subscriptions(store.sealer)
                try SessionServer.Subscriptions.forEach(selected, in: store) { summary in
                    guard services.contains(summary.service) else { return true }
                    // Outside of the writer: the store explains that the row is damaged.
                    let content = try subscriptions.open(summary).encoded()
                    return writer.add {
                        RegistrationsFile.Line(
                            subscription: .init(
                                service: summary.service.rawValue, content: Data(content),
                                wasDelivered: summary.wasDelivered ? true : nil))
                    }
                }
            }
            let key = store.sealer.lookUpKeyMark
            // Before the subscriptions, one of which may have been made in the second in which its device had unsubscribed.
            if filter.isRegistered != true {
                try SessionServer.Subscriptions.forEachLeftName(in: store) { left in
                    writer.add {
                        RegistrationsFile.Line(
                            unsubscribedName: .init(name: Data(left.name), signedAt: left.signedAt, expiresAt: left.expiresAt, key: key))
                    }
                }
            }
            // An earlier release ends its import at the first line that it does not know. It knows neither Web Push nor ahead times, so these are last.
            if filter.isRegistered != false { try exportSubscriptions(of: Set(PushService.ofGorush)) }
            if filter.isRegistered != false { try exportSubscriptions(of: [.webPush]) }
            guard filter.isRegistered != true else { return }
            // After all subscriptions, because a subscription whose time is already known would count as a replay.
            try SessionServer.Subscriptions.forEachAheadTime(in: store) { ahead in
                writer.add {
                    RegistrationsFile.Line(
                        aheadTime: .init(
                            name: Data(ahead.name), kind: ahead.kind, signedAt: ahead.signedAt, arrivedAt: ahead.arrivedAt, key: key))
                }
            }
        },
        entry: { line, _ in
            if let subscription = line.subscription, let service = PushService(rawValue: subscription.service),
                let record = try? SubscriptionRecord(parsing: Array(subscription.content))
            {
                return RegistrationsFile.Entry(byteCount: 0) {
                    SessionServer.Subscriptions($0).merge(
                        record, service, wasDelivered: subscription.wasDelivered == true, at: Timestamp.now().rawValue / 1_000_000_000)
                }
            }
            if let left = line.unsubscribedName {
                let export = (name: Array(left.name), signedAt: left.signedAt, expiresAt: left.expiresAt)
                return RegistrationsFile.Entry(byteCount: 0, lookUpKey: left.key) { _ in
                    SessionServer.Subscriptions.merge(export, at: .now())
                }
            }
            return line.aheadTime.map { ahead in
                let export = (name: Array(ahead.name), kind: ahead.kind, signedAt: ahead.signedAt, arrivedAt: ahead.arrivedAt)
                return RegistrationsFile.Entry(byteCount: 0, lookUpKey: ahead.key) { _ in SessionServer.Subscriptions.merge(export) }
            }
        })
}
