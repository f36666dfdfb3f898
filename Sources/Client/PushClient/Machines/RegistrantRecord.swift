import StatusProtocol
import Core
import Waku
import WakuCrypto

/// What is known of a registrant's devices.
struct RegistrantRecord: Codable, Hashable, Sendable {
    /// One device at one server.
    struct Row: Codable, Hashable, Sendable {
        @Stored var server: PublicKey
        @Stored var installationID: InstallationID
        var version: UInt64
        /// nil: it was given to others only.
        @Stored var accessToken: AccessToken?
        @StoredBytes var grant: [UInt8]
        /// Kept of the own devices only, to be advertised with this one's.
        @Stored var allowedKeyList: [StoredData]
        @Stored var learnedAt: Timestamp

        /// A device at a server, whatever is known of its token.
        struct Place: Hashable, Sendable {
            let server: PublicKey
            let installationID: InstallationID
        }

        var place: Place { Place(server: server, installationID: installationID) }

        /// Whether a sender may still use the token without a query.
        func isFresh(at now: Timestamp) -> Bool {
            now.since(learnedAt) < Directory.tokenLife
        }
    }

    struct Activity: Codable, Hashable, Sendable {
        @Stored var installationID: InstallationID
        @Stored var time: Timestamp
    }

    @Stored var registrant: PublicKey
    /// Its contact code topic is listened to.
    var isWatched = false
    /// The store was asked for its latest advertisement.
    var wasLookedUp = false
    var rows: [Row] = []
    /// When its devices were last heard of.
    var activities: [Activity] = []

    /// When the advertisement was published that the rows come from. Only version 0.1 keeps it: there each advertisement replaces the one before.
    var advertisedAt: StoredTime?

    init(_ registrant: PublicKey) {
        _registrant = Stored(wrappedValue: registrant)
    }

    /// - Parameters:
    ///   - installationID: The device that was heard of.
    ///   - time: When.
    ///   - limit: How many devices are remembered.
    mutating func noteActivity(of installationID: InstallationID, at time: Timestamp, limit: Int) {
        if let index = activities.firstIndex(where: { $0.installationID == installationID }) {
            guard activities[index].time < time else { return }
            activities[index].time = time
        } else if activities.count < limit {
            activities.append(.init(installationID: installationID, time: time))
        }
    }

    /// A token that was refused is not used again before a query confirmed it. A token that was learned since then stays.
    mutating func forgetToken(of installationID: InstallationID, at server: PublicKey, token: AccessToken) {
        for index in rows.indices
        where rows[index].server == server && rows[index].installationID == installationID && rows[index].accessToken == token {
            rows[index].learnedAt = Timestamp(rawValue: 0)
        }
    }
}
