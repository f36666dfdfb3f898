import Core
import Delivery
import SessionProtocol
import Storage
import WakuCrypto

/// Notifications that wait while their subscription is renewed with another `enc_key`: the app can only open the new one.
extension Subscriptions {
    /// The number of a device's oldest waiting notifications that are sealed again: 3 MB. Later ones can't be opened by the app.
    private static let sealedAgainLimit = 1_000

    private static let findSealed = Query(
        SessionStorage.subscription, [SessionStorage.signedAt, SessionStorage.sealed], where: [.equal(.id)])

    /// A renewed subscription.
    private struct Renewal: Sendable {
        let name: [UInt8]
        let row: Int64
        let record: SubscriptionRecord
    }

    /// The changes of waiting notifications.
    func sealAgain(_ batch: RequestBatch, names: [[UInt8]]) -> StoreCommand<[Change]> {
        let renewals = names.compactMap { name in
            batch.names[name].flatMap { state in
                guard !state.endsRow, let row = state.row, let form = state.form else { return nil as Renewal? }
                return Renewal(name: name, row: row.id, record: SubscriptionRecord(form))
            }
        }
        guard let sodium, !renewals.isEmpty else { return .done([]) }
        return DeliveryStorage.sealed(of: renewals.map { Self.device($0.row) }, limit: Self.sealedAgainLimit).then { waiting in
            let concerned = zip(renewals, waiting).filter { !$1.isEmpty }
            return .read(concerned.map { Self.findSealed(.integer($0.0.row)) }) { found in
                .done(
                    zip(concerned, found).flatMap { concerned, rows in
                        rows.first.map { sealAgain(concerned.1, for: concerned.0, replacing: $0, sodium) } ?? []
                    })
            }
        }
    }

    private static func areEqual(_ one: SymmetricKey, _ other: SymmetricKey) -> Bool {
        one.secret.withBytes { one in other.secret.withBytes { one.elementsEqual($0) } }
    }

    /// - Parameter row: a result row of `findSealed`. If it is damaged, the notifications stay as they are.
    private func sealAgain(
        _ waiting: [DeliveryStorage.Sealed], for renewal: Renewal, replacing row: Row, _ sodium: Sodium
    ) -> [Change] {
        guard let former = try? open(try row.bytes(1), named: renewal.name, signedAt: try row.integer(0)),
            !Self.areEqual(former.encryptionKey, renewal.record.encryptionKey)
        else { return [] }
        return waiting.compactMap { sealed in
            guard let bytes = try? DeliveryStorage.payload(sealed.payload, of: sealed.delivery, by: sealer),
                let payload = try? SessionPayload(parsing: bytes),
                let again = try? payload.sealedAgain(from: former.encryptionKey, to: renewal.record.encryptionKey, sodium)
            else { return nil }
            return DeliveryStorage.replacePayload(of: sealed, with: again.encoded(), by: sealer)
        }
    }
}
