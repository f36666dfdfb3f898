import Core
import StatusProtocol
import WakuCrypto

/// An advertisement lists all devices of its owner, so that a newer one replaces an older one. For a row without a token, its server must be
/// queried. There are no grants: servers that the registrant advertised, or that this client lists, are trusted.
///
/// An advertisement has no signed version or time, so the timestamps of Waku messages order them. An old advertisement published again
/// therefore counts as the newest until the owner's next one, within a day. Servers refuse its outdated tokens.
extension Directory {
    /// Adds the rows of an advertisement signed by the registrant. Rows with an unusable server key, installation id or token are left out.
    ///
    /// - Parameter sentAt: The publication time, in the client's time.
    /// - Returns: Whether devices or their servers changed, and whether all rows were used.
    mutating func learn(advertised rows: [V01.AdvertisementInfo], by owner: PublicKey, sentAt: Timestamp) -> (isNews: Bool, isWhole: Bool) {
        if let last = registrants[owner]?.advertisedAt, last.time > sentAt { return (false, true) }
        let (before, places) = (self.rows(of: owner), places(of: owner))
        let usable = rows.prefix(Self.rowLimit).compactMap { info -> RegistrantRecord.Row? in
            guard let server = try? PublicKey(parsing: info.publicKey), info.installationID.isUsable,
                info.accessToken.isEmpty || info.accessToken.isUUID
            else { return nil }
            guard info.accessToken.isEmpty else { return Self.row(server, info.installationID, info.accessToken, learnedAt: sentAt) }
            // A token from the server's earlier answer stays valid until the server refuses it.
            var row = Self.row(server, info.installationID, nil, learnedAt: Timestamp(rawValue: 0))
            if let known = before.first(where: { $0.place == row.place && $0.accessToken != nil }) { row = known }
            row.withdrawal = nil
            return row
        }
        update(owner) { record in
            record.rows = usable.firstOfEachPlace
            record.advertisedAt = StoredTime(sentAt)
        }
        return (self.places(of: owner) != places, usable.count == min(rows.count, Self.rowLimit))
    }

    /// Adds a server's answer, which lists all devices of the registrant at this server. It can't displace rows of other servers: if there are too
    /// many rows, the server with the most loses some.
    ///
    /// - Parameter rows: The rows of the answer. Rows about another registrant, or without a usable token, are left out.
    /// - Returns: Whether devices or their servers changed.
    mutating func learn(
        answered rows: [V01.QueryInfo], about registrant: PublicKey, by server: PublicKey, identity: PrivateKey, at now: Timestamp
    ) -> Bool {
        let hash = V01.KeyHash(of: registrant).bytes
        let taken = rows.prefix(Self.rowLimit).compactMap { info -> RegistrantRecord.Row? in
            guard info.publicKey == hash, info.installationID.isUsable else { return nil }
            guard info.encryptedAccessTokens.isEmpty else {
                let token = V01.openToken(info.encryptedAccessTokens, from: registrant, by: identity)
                return Self.row(server, info.installationID, token, learnedAt: now)
            }
            return info.accessToken.isUUID ? Self.row(server, info.installationID, info.accessToken, learnedAt: now) : nil
        }
        let before = places(of: registrant)
        if !taken.isEmpty {
            update(registrant) { record in
                record.rows.removeAll { $0.server == server }
                record.rows += taken.firstOfEachPlace
                while record.rows.count > Self.rowLimit { record.rows.removeLastOfTheLargestServer() }
            }
        }
        noteAnswered(Set(rows.map(\.installationID)), of: registrant, by: server, at: now)
        return places(of: registrant) != before
    }

    private static func row(
        _ server: PublicKey, _ installationID: InstallationID, _ token: AccessToken?, learnedAt: Timestamp
    ) -> RegistrantRecord.Row {
        RegistrantRecord.Row(
            server: server, installationID: installationID, version: 0, accessToken: token, grant: [], allowedKeyList: [],
            learnedAt: learnedAt)
    }
}

extension [RegistrantRecord.Row] {
    fileprivate var firstOfEachPlace: [RegistrantRecord.Row] {
        var places: Set<RegistrantRecord.Row.Place> = []
        return filter { places.insert($0.place).inserted }
    }

    fileprivate mutating func removeLastOfTheLargestServer() {
        let counts = Dictionary(grouping: self, by: \.server).mapValues(\.count)
        let most = counts.values.max()
        if let index = lastIndex(where: { counts[$0.server] == most }) { remove(at: index) }
    }
}
