import Core
import StatusProtocol
import WakuCrypto

/// A row counts only with its registrant's grant for its server. Of each (registrant, installation, server), only the newest version is kept.
extension Directory {
    /// Adds rows signed by the registrant itself. Reading stops at a row without server key, of another key, or with an invalid grant; the rows
    /// before it are used.
    ///
    /// A device's latest advertisement is authoritative for the device itself: rows that it is without are withdrawn. Its rows about the registrant's
    /// other devices may be outdated.
    ///
    /// - Parameters:
    ///   - installationID: The device that published the advertisement; nil when unknown.
    ///   - sentAt: The publication time, in the client's time.
    /// - Returns: Whether devices or their servers changed, and whether all rows were used.
    @discardableResult
    mutating func learn(
        advertised rows: [PushNotificationQueryInfo], by owner: PublicKey, from installationID: InstallationID?, sentAt: Timestamp
    ) -> (isNews: Bool, isWhole: Bool) {
        let isOwn = owner == cryptography.publicKey
        var taken: [RegistrantRecord.Row] = []
        let ownerHash = KeyHash(of: owner).bytes
        let installationID = installationID.flatMap { $0.isUsable ? $0 : nil }
        for info in rows.prefix(Self.rowLimit) {
            guard info.publicKey == ownerHash, let server = try? PublicKey(parsing: info.serverPublicKey),
                let row = row(info, of: owner, at: server, learnedAt: sentAt)
            else { break }
            taken.append(row)
        }
        let isWhole = taken.count == min(rows.count, Self.rowLimit)
        if isOwn, let installationID { taken.removeAll { $0.installationID != installationID } }
        let before = places(of: owner)
        update(owner) { record in
            for row in taken {
                let isAuthoritative = record.advertised(row.installationID).map { row.installationID == installationID && $0 <= sentAt }
                Self.merge(row, into: &record, isAuthoritative: isAuthoritative ?? true)
            }
            guard let installationID else { return }
            record.noteActivity(of: installationID, at: sentAt)
            guard isWhole, record.advertised(installationID).map({ $0 <= sentAt }) ?? true else { return }
            record.noteAdvertisement(of: installationID, at: sentAt)
            for index in record.rows.indices where record.rows[index].installationID == installationID {
                let old = record.rows[index]
                guard old.learnedAt <= sentAt, !taken.contains(where: { $0.place == old.place }) else { continue }
                record.rows[index].withdraw(.advertisement, at: sentAt)
            }
        }
        return (places(of: owner) != before, isWhole)
    }

    /// Adds the rows of a server's answer. Rows of another key, of another server, or with an invalid grant are left out.
    ///
    /// - Parameter server: The signer of the answer.
    /// - Returns: Whether devices or their servers changed.
    @discardableResult
    mutating func learn(answered rows: [PushNotificationQueryInfo], about registrant: PublicKey, by server: PublicKey, at now: Timestamp)
        -> Bool
    {
        let hash = KeyHash(of: registrant).bytes
        let taken = rows.prefix(Self.rowLimit).compactMap { info -> RegistrantRecord.Row? in
            guard info.publicKey == hash, info.serverPublicKey.isEmpty || info.serverPublicKey == server.compressed else { return nil }
            return row(info, of: registrant, at: server, learnedAt: now)
        }
        let before = places(of: registrant)
        if !taken.isEmpty {
            update(registrant) { record in
                for row in taken { Self.merge(row, into: &record, isAuthoritative: true) }
            }
        }
        noteAnswered(Set(rows.map(\.installationID)), of: registrant, by: server, at: now)
        return places(of: registrant) != before
    }

    /// A row with neither a token nor a list is of a device for contacts only that has no contacts.
    private func row(
        _ info: PushNotificationQueryInfo, of registrant: PublicKey, at server: PublicKey, learnedAt: Timestamp
    ) -> RegistrantRecord.Row? {
        guard info.installationID.isUsable else { return nil }
        let isOwn = registrant == cryptography.publicKey
        let token = info.accessToken.isEmpty ? cryptography.accessToken(in: info.allowedKeyList, of: registrant) : info.accessToken
        if let token {
            guard cryptography.isValidGrant(info.grant, by: registrant, for: server, accessToken: token) else { return nil }
        }
        return RegistrantRecord.Row(
            server: server, installationID: info.installationID, version: info.version, accessToken: token, grant: info.grant,
            allowedKeyList: isOwn ? info.allowedKeyList.map(StoredData.init) : [], learnedAt: learnedAt)
    }

    /// - Parameter isAuthoritative: false for a row in an advertisement of another device, or in an outdated one: it confirms what is known, but does
    ///   not bring back a registration that the device or its server took back.
    private static func merge(_ row: RegistrantRecord.Row, into record: inout RegistrantRecord, isAuthoritative: Bool) {
        if let index = record.rows.firstIndex(where: { $0.place == row.place }) {
            let old = record.rows[index]
            let isValid = old.withdrawal.map { isAuthoritative && row.learnedAt >= $0.time } ?? true
            guard row.version > old.version || (row.version == old.version && row.learnedAt >= old.learnedAt && isValid) else { return }
            record.rows[index] = row
            return
        }
        var row = row
        if !isAuthoritative { row.withdraw(.advertisement, at: row.learnedAt) }
        if record.rows.count < rowLimit {
            record.rows.append(row)
        } else if row.accessToken != nil, let unproven = record.rows.lastIndex(where: { $0.accessToken == nil }) {
            // Without its token a row's grant can't be checked: a server may have invented it.
            record.rows[unproven] = row
        }
    }

    /// Rows of the account's other devices, to advertise along with this device's.
    func pairedRows(besides installationID: InstallationID, at now: Timestamp) -> [PushNotificationQueryInfo] {
        let owner = cryptography.publicKey
        let hash = KeyHash(of: owner).bytes
        return validRows(of: owner).compactMap { row in
            guard row.installationID != installationID, now.since(row.learnedAt) < Self.pairedLife else { return nil }
            let isFiltered = !row.allowedKeyList.isEmpty
            // Of use to nobody, and earlier releases read no further.
            guard isFiltered || row.accessToken != nil else { return nil }
            return PushNotificationQueryInfo(
                accessToken: isFiltered ? AccessToken("") : row.accessToken ?? AccessToken(""), installationID: row.installationID,
                publicKey: hash, allowedKeyList: row.allowedKeyList.map(\.bytes), grant: row.grant, version: row.version,
                serverPublicKey: row.server.compressed)
        }
    }
}
