import StatusProtocol
import Core
import WakuCrypto

/// Knowledge about registrants' devices, and the search for the devices of a message. The protocols differ in how they learn about devices, but
/// search alike.
protocol DeviceDirectory: Sendable {
    var book: RegistrantBook { get set }
}

/// The records of registrants, and which of them changed.
struct RegistrantBook: Sendable {
    private(set) var registrants: [PublicKey: RegistrantRecord] = [:]
    fileprivate var changed: Set<PublicKey> = []
    fileprivate var lookUpsEnded: Set<PublicKey> = []

    init(restoring records: [RegistrantRecord] = []) {
        for record in records { registrants[record.registrant] = record }
    }

    mutating func update(_ registrant: PublicKey, _ body: (inout RegistrantRecord) -> Void) {
        let before = registrants[registrant]
        var record = before ?? RegistrantRecord(registrant)
        body(&record)
        guard record != before else { return }
        registrants[registrant] = record
        changed.insert(registrant)
    }

    fileprivate mutating func remove(_ registrant: PublicKey) {
        guard registrants.removeValue(forKey: registrant) != nil else { return }
        changed.insert(registrant)
    }
}

extension InstallationID {
    /// Whether a server could accept the id, so that it is worth storing.
    var isUsable: Bool { (1...Self.maximumByteCount).contains(bytes.count) }
}

extension DeviceDirectory {
    var registrants: [PublicKey: RegistrantRecord] { book.registrants }

    mutating func takeChanges() -> Set<PublicKey> {
        defer { book.changed = [] }
        return book.changed
    }

    // MARK: Watching

    /// - Returns: Whether the registrant was not watched before.
    mutating func watch(_ registrant: PublicKey) -> Bool {
        let isNew = registrants[registrant]?.isWatched != true
        book.update(registrant) { $0.isWatched = true }
        return isNew
    }

    /// Removes all state about a registrant.
    mutating func forget(_ registrant: PublicKey) {
        book.remove(registrant)
    }

    // MARK: Looking up advertisements

    /// Registrants for which the look-up of the latest advertisement ended in this run, with or without a result.
    var lookUpsEnded: Set<PublicKey> { book.lookUpsEnded }

    /// Begins a run. A registrant of whom nothing was found may have advertised since.
    mutating func resetLookUps() {
        book.lookUpsEnded = []
        for registrant in watched where rows(of: registrant).isEmpty { book.update(registrant) { $0.wasLookedUp = false } }
    }

    /// - Parameter isNew: Whether the registrant was not watched before.
    /// - Returns: Whether a look-up is to begin: not after a successful one, and not while one is under way.
    mutating func beginLookUp(of registrant: PublicKey, isNew: Bool) -> Bool {
        if registrants[registrant]?.wasLookedUp == true {
            book.lookUpsEnded.insert(registrant)
            return false
        }
        return book.lookUpsEnded.remove(registrant) != nil || isNew
    }

    /// - Parameter isDone: false if no store can be queried: the registrants' earlier advertisements stay unknown.
    mutating func endLookUps(of registrants: [PublicKey], isDone: Bool) {
        book.lookUpsEnded.formUnion(registrants)
        guard isDone else { return }
        for registrant in registrants { book.update(registrant) { $0.wasLookedUp = true } }
    }

    /// Records that a message came from this device.
    mutating func noteActivity(of installationID: InstallationID, of registrant: PublicKey, at time: Timestamp) {
        book.update(registrant) { $0.noteActivity(of: installationID, at: time, limit: Directory.rowLimit) }
    }

    /// Discards a token that a server refused, or a device that it does not know, until a query confirms it. A token learned since then stays. The
    /// server may still be queried about the registrant.
    mutating func forgetToken(
        of installationID: InstallationID, of registrant: PublicKey, at server: PublicKey, token: AccessToken, isGone: Bool
    ) {
        book.update(registrant) { $0.forgetToken(of: installationID, at: server, token: token, isGone: isGone) }
    }

    // MARK: Finding

    /// Registrants whose contact code topics the client subscribes to.
    var watched: [PublicKey] { registrants.values.filter(\.isWatched).map(\.registrant) }

    func rows(of registrant: PublicKey) -> [RegistrantRecord.Row] {
        registrants[registrant]?.rows ?? []
    }

    /// The known devices, with their servers.
    func places(of registrant: PublicKey) -> Set<RegistrantRecord.Row.Place> {
        Set(rows(of: registrant).map(\.place))
    }

    /// Rows of a device whose token can be used without a query.
    func usableRows(of installationID: InstallationID, of registrant: PublicKey, at now: Timestamp) -> [RegistrantRecord.Row] {
        rows(of: registrant).filter { $0.installationID == installationID && $0.accessToken != nil && $0.isFresh(at: now) }
    }

    /// Whether the device is known to allow only other clients to notify it.
    func isForOthers(_ installationID: InstallationID, of registrant: PublicKey, at now: Timestamp) -> Bool {
        let fresh = rows(of: registrant).filter { $0.installationID == installationID && $0.isFresh(at: now) }
        return !fresh.isEmpty && fresh.allSatisfy { $0.accessToken == nil }
    }

    /// Whether every server that is known to have had the device answered that it does not know it.
    func isGone(_ installationID: InstallationID, of registrant: PublicKey) -> Bool {
        let rows = rows(of: registrant).filter { $0.installationID == installationID }
        return !rows.isEmpty && rows.allSatisfy { $0.isGone == true }
    }

    /// Devices with usable tokens, most recently active first, at most `limit`.
    func activeInstallations(of registrant: PublicKey, limit: Int, at now: Timestamp) -> [InstallationID] {
        let rows = rows(of: registrant).filter { $0.accessToken != nil && $0.isFresh(at: now) }
        var times: [InstallationID: Timestamp] = [:]
        for row in rows { times[row.installationID] = max(times[row.installationID] ?? row.learnedAt, row.learnedAt) }
        let activities = registrants[registrant]?.activities ?? []
        for activity in activities where times[activity.installationID] != nil { times[activity.installationID] = activity.time }
        let sorted = times.sorted { left, right in
            left.value != right.value ? left.value > right.value : left.key.bytes.lexicographicallyPrecedes(right.key.bytes)
        }
        return sorted.prefix(limit).map(\.key)
    }

    /// Servers known to be used by the registrant.
    func servers(of registrant: PublicKey) -> Set<PublicKey> {
        Set(rows(of: registrant).map(\.server))
    }
}
