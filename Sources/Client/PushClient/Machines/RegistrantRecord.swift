import StatusProtocol
import Core
import WakuCrypto

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
        /// Set when the device no longer advertises the row, or its server refused it. A withdrawn row only names a server to query.
        var withdrawal: Withdrawal?

        struct Withdrawal: Codable, Hashable, Sendable {
            enum Reason: String, Codable {
                /// A newer advertisement of the device is without the row. status-go's clients advertise no rows while they register again.
                case advertisement
                case refusal
                case absence
            }

            let reason: Reason
            @Stored var time: Timestamp
        }

        /// A device at a server, with or without a known token.
        struct Place: Hashable, Sendable {
            let server: PublicKey
            let installationID: InstallationID
        }

        var place: Place { Place(server: server, installationID: installationID) }

        /// Whether the token is recent enough for use without a query.
        func isFresh(at now: Timestamp) -> Bool {
            withdrawal == nil && now.since(learnedAt) < Directory.tokenLife
        }

        /// Records why the row no longer counts. Absence, the server's own word, is not replaced.
        mutating func withdraw(_ reason: Withdrawal.Reason, at time: Timestamp) {
            guard withdrawal?.reason != .absence else { return }
            withdrawal = Withdrawal(reason: reason, time: time)
        }
    }

    struct Activity: Codable, Hashable, Sendable {
        @Stored var installationID: InstallationID
        @Stored var time: Timestamp
    }

    @Stored var registrant: PublicKey
    var isWatched = false
    /// Not used any more. Earlier releases can't read records without it.
    private var wasLookedUp = false
    var rows: [Row] = []
    /// When each of its devices was last active.
    var activities: [Activity] = []
    /// When each of its devices published its latest known advertisement. Not used by version 0.1.
    var advertisements: [Activity]?

    /// When the advertisement behind the rows was published. Used by version 0.1 only, where each advertisement replaces the previous one.
    var advertisedAt: StoredTime?
    /// See ``MachineRecord/storedAt``.
    var storedAt: StoredTime?

    init(_ registrant: PublicKey) {
        _registrant = Stored(wrappedValue: registrant)
    }

    mutating func noteActivity(of installationID: InstallationID, at time: Timestamp) {
        activities.note(installationID, at: time)
    }

    mutating func noteAdvertisement(of installationID: InstallationID, at time: Timestamp) {
        advertisements = advertisements ?? []
        advertisements?.note(installationID, at: time)
    }

    func advertised(_ installationID: InstallationID) -> Timestamp? {
        advertisements?.first { $0.installationID == installationID }?.time
    }

    /// Withdraws a row whose token its server refused, until a query confirms it. A token learned since then stays.
    mutating func refused(
        _ installationID: InstallationID, at server: PublicKey, token: AccessToken, _ reason: Row.Withdrawal.Reason, at now: Timestamp
    ) {
        for index in rows.indices
        where rows[index].server == server && rows[index].installationID == installationID && rows[index].accessToken == token {
            rows[index].learnedAt = Timestamp(rawValue: 0)
            rows[index].withdraw(reason, at: now)
        }
    }
}

extension [RegistrantRecord.Activity] {
    /// Remembers the latest time of a device.
    fileprivate mutating func note(_ installationID: InstallationID, at time: Timestamp) {
        if let index = firstIndex(where: { $0.installationID == installationID }) {
            self[index].time = Swift.max(self[index].time, time)
        } else if count < Directory.rowLimit {
            append(.init(installationID: installationID, time: time))
        }
    }
}
