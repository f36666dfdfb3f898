package import Core
import SessionProtocol
package import Storage

/// The name of an ended subscription, exported for another database of the same node. Subscriptions with a lower `sig_ts` are refused. Unix seconds.
package typealias UnsubscribedNameExport = (name: [UInt8], signedAt: Int64, expiresAt: Int64)

/// Export and import.
extension Subscriptions {
    private static let findSignedAt = Query(
        SessionStorage.subscription, [SessionStorage.signedAt], where: [.equal(SessionStorage.name)])
    private static let setDelivered = Mutation(
        SessionStorage.subscription,
        .updateAny([SessionStorage.deliveredAt], where: [.equal(SessionStorage.name), .absent(SessionStorage.deliveredAt)]))

    /// Stores an exported subscription, unless it is expired, or one with the same name and account and the same or a later `sig_ts` is stored.
    ///
    /// - Parameters:
    ///   - wasDelivered: whether gorush has accepted a notification for it.
    ///   - now: Unix seconds.
    /// - Returns: Whether it was stored.
    package func merge(
        _ record: SubscriptionRecord, _ service: PushService, wasDelivered: Bool = false, at now: Int64
    ) -> StoreCommand<Bool> {
        let device = SubscriberDevice(service: service, token: record.token.value)
        let name = name(of: record.authority.account, device)
        let form = SubscriptionForm(
            authority: record.authority, namespaces: record.namespaces, wantsData: record.wantsData, device: device,
            encryptionKey: record.encryptionKey)
        guard !StoredSubscription(signedAt: record.authority.signedAt).isExpired(at: now) else { return .done(false) }
        return .find(Self.findSignedAt(.bytes(name))) { rows in
            if let row = rows.first, try row.integer(0) == record.authority.signedAt { return .done(false) }
            let rules = SubscriptionRules(availableServices: [service], maximumDevicesPerAccount: .max)
            return apply([.subscribe(form)], rules, at: now) { _ in nil }.then { applied in
                let isStored = applied.answers.allSatisfy { answer in if case .failed = answer { false } else { true } }
                return .change(isStored && wasDelivered ? [Self.setDelivered(.integer(now), .bytes(name))] : [], isStored)
            }
        }
    }

    private static let findNames = Query(
        SessionStorage.unsubscribedName, [SessionStorage.name, SessionStorage.signedAt, SessionStorage.expiresAt], order: [.ascending(.id)])
    private static let findName = Query(SessionStorage.unsubscribedName, [SessionStorage.signedAt], where: [.equal(SessionStorage.name)])

    /// Reads the names of ended subscriptions until `visit` returns false. Blocks, as the store's `scan` does.
    package static func forEachLeftName(in store: any Store, _ visit: (UnsubscribedNameExport) throws -> Bool) throws(StoreError) {
        try store.scan(findNames()) { row in
            try visit((name: try row.bytes(0), signedAt: try row.integer(1), expiresAt: try row.integer(2)))
        }
    }

    /// Stores the name of an ended subscription, unless a later one is stored. Ends a subscription of that name without a later `sig_ts`.
    ///
    /// - Returns: Whether it was stored.
    package static func merge(_ left: UnsubscribedNameExport, at now: Timestamp) -> StoreCommand<Bool> {
        .read([findName(.bytes(left.name)), findRow(.bytes(left.name))]) { found in
            if let row = found[0].first, try row.integer(0) >= left.signedAt { return .done(false) }
            let rows = try found[1].map { (id: try $0.integer(0), signedAt: try $0.integer(1)) }
            return end(rows.filter { $0.signedAt <= left.signedAt }, at: now).then { changes in
                .change([writeLeft(.bytes(left.name), .integer(left.signedAt), .integer(left.expiresAt))] + changes, true)
            }
        }
    }
}
