import StatusProtocol
import Core
import WakuCrypto

/// The known devices of a registrant.
struct RegistrantRecord: Codable, Hashable, Sendable {
    /// One device at one server.
    struct Row: Codable, Hashable, Sendable {
        @Stored var server: PublicKey
        @Stored var installationID: InstallationID
        var version: UInt64
        /// nil when the token was given to other clients only.
        @Stored var accessToken: AccessToken?
        @StoredBytes var grant: [UInt8]
        /// Stored for the account's own devices only, to advertise them along with this device.
        @Stored var allowedKeyList: [StoredData]
        @Stored var learnedAt: Timestamp
        /// The server answered that it does not know the device; nil as long as it did not.
        var isGone: Bool?

        /// A device at a server, with or without a known token.
        struct Place: Hashable, Sendable {
            let server: PublicKey
            let installationID: InstallationID
        }

        var place: Place { Place(server: server, installationID: installationID) }

        /// Whether the token is recent enough for use without a query.
        func isFresh(at now: Timestamp) -> Bool {
            now.since(learnedAt) < Directory.tokenLife
        }
    }

    struct Activity: Codable, Hashable, Sendable {
        @Stored var installationID: InstallationID
        @Stored var time: Timestamp
    }

    @Stored var registrant: PublicKey
    /// Whether the client subscribes to its contact code topic.
    var isWatched = false
    /// Whether the store was queried for its latest advertisement.
    var wasLookedUp = false
    var rows: [Row] = []
    /// When each of its devices was last active.
    var activities: [Activity] = []

    /// When the advertisement behind the rows was published. Used by version 0.1 only, where each advertisement replaces the previous one.
    var advertisedAt: StoredTime?

    init(_ registrant: PublicKey) {
        _registrant = Stored(wrappedValue: registrant)
    }

    /// Remembers the time of a device's activity, for at most `limit` devices.
    mutating func noteActivity(of installationID: InstallationID, at time: Timestamp, limit: Int) {
        if let index = activities.firstIndex(where: { $0.installationID == installationID }) {
            guard activities[index].time < time else { return }
            activities[index].time = time
        } else if activities.count < limit {
            activities.append(.init(installationID: installationID, time: time))
        }
    }

    /// Discards a refused token until a query confirms it. A token learned since then stays.
    mutating func forgetToken(of installationID: InstallationID, at server: PublicKey, token: AccessToken, isGone: Bool) {
        for index in rows.indices
        where rows[index].server == server && rows[index].installationID == installationID && rows[index].accessToken == token {
            rows[index].learnedAt = Timestamp(rawValue: 0)
            rows[index].isGone = isGone ? true : nil
        }
    }
}
