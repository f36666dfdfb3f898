import Core
import Delivery
import SessionProtocol
import Storage
import WakuCrypto

/// Notifications that wait while their subscription is renewed with another `enc_key`: the app can only open the new one.
extension Subscriptions {
    /// The number of waiting notifications that a body has sealed again, the oldest of each device: 3 MB. The app can't open later ones.
    private static let sealedAgainLimit = 1_000

    private static let findSealed = Query(
        SessionStorage.subscription, [SessionStorage.signedAt, SessionStorage.sealed], where: [.equal(.id)])

    /// A renewed subscription.
    private typealias Renewal = (name: [UInt8], row: Int64, record: SubscriptionRecord)

    /// The changes of waiting notifications.
    func sealAgain(_ batch: RequestBatch, names: [[UInt8]]) -> StoreCommand<[Change]> {
        let renewals = names.compactMap { name in
            batch.names[name].flatMap { state in
                guard !state.endsRow, let row = state.row, let form = state.form else { return nil as Renewal? }
                return (name, row.id, SubscriptionRecord(form))
            }
        }
        guard let sodium, !renewals.isEmpty else { return .done([]) }
        // Most devices have no waiting notification, and most of the others have the same key: nothing more is read for them.
        return DeliveryStorage.sealed(of: renewals.map { Self.device($0.row) }, limit: 1).then { first in
            let concerned = zip(renewals, first).filter { !$1.isEmpty }.map(\.0)
            return .read(concerned.map { Self.findSealed(.integer($0.row)) }) { found in
                let changed = zip(concerned, found).compactMap { renewal, rows in
                    rows.first.flatMap { formerKey(of: renewal, in: $0) }.map { (renewal: renewal, formerKey: $0) }
                }
                guard !changed.isEmpty else { return .done([]) }
                let devices = changed.map { Self.device($0.renewal.row) }
                return DeliveryStorage.sealed(of: devices, limit: max(Self.sealedAgainLimit / changed.count, 1)).map { waiting in
                    zip(changed, waiting).flatMap { sealAgain($1, from: $0.formerKey, to: $0.renewal.record.encryptionKey, sodium) }
                }
            }
        }
    }

    private static func areEqual(_ one: SymmetricKey, _ other: SymmetricKey) -> Bool {
        one.secret.withBytes { one in other.secret.withBytes { one.elementsEqual($0) } }
    }

    /// The key of a renewed subscription before its renewal.
    ///
    /// - Parameter row: a result row of `findSealed`.
    /// - Returns: nil if it is the same, or the row is damaged: then the notifications stay as they are.
    private func formerKey(of renewal: Renewal, in row: Row) -> SymmetricKey? {
        guard let former = try? open(try row.bytes(1), named: renewal.name, signedAt: try row.integer(0)),
            !Self.areEqual(former.encryptionKey, renewal.record.encryptionKey)
        else { return nil }
        return former.encryptionKey
    }

    private func sealAgain(
        _ waiting: [DeliveryStorage.Sealed], from former: SymmetricKey, to key: SymmetricKey, _ sodium: Sodium
    ) -> [Change] {
        waiting.compactMap { sealed in
            guard let bytes = try? DeliveryStorage.payload(sealed.payload, of: sealed.delivery, by: sealer),
                let payload = try? SessionPayload(parsing: bytes), let again = try? payload.sealedAgain(from: former, to: key, sodium)
            else { return nil }
            return DeliveryStorage.replacePayload(of: sealed, with: again.encoded(), by: sealer)
        }
    }
}
