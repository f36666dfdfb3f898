import StatusProtocol
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

    init(_ registrant: PublicKey) {
        _registrant = Stored(wrappedValue: registrant)
    }
}
