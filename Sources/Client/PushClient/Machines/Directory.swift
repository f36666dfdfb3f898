import StatusProtocol
import Core
import WakuCrypto

/// The known devices of registrants, and the servers that can notify them. The versions of the protocol differ in how they learn about
/// devices: see `learn(advertised:…)` and `learn(answered:…)` of each.
struct Directory: Sendable {
    /// The age at which a token must be confirmed by a server.
    static let tokenLife = Duration.seconds(24 * 3600)
    /// How long rows of the account's other devices are advertised.
    static let pairedLife = Duration.seconds(30 * 24 * 3600)
    /// How long withdrawn rows are kept, as servers to query.
    static let withdrawnLife = Duration.seconds(30 * 24 * 3600)
    /// How long rows are kept that nothing confirms while another one of the registrant is: of a lost device at a server that is gone.
    static let unconfirmedLife = Duration.seconds(60 * 24 * 3600)
    /// How often servers are queried about unconfirmed devices of a registrant who has other ones, unless one was withdrawn meanwhile.
    static let queryPeriod = Duration.seconds(600)
    static let rowLimit = 100

    let cryptography: any ClientCryptography
    private(set) var registrants: [PublicKey: RegistrantRecord] = [:]
    private var changed: Set<PublicKey> = []
    /// Registrants about whom anything changed, stored or not.
    private var affected: Set<PublicKey> = []
    /// The look-up of each registrant's latest advertisement in the network's store. Each run makes one, and another one after a long time without
    /// messages. No result: it is under way.
    private var lookUps: [PublicKey: LookUpResult?] = [:]
    /// When the last query about each registrant began in this run.
    private var queries: [PublicKey: Timestamp] = [:]
    /// Registrants about whom a server answered, or whose advertisement arrived, in this run.
    private var answered: Set<PublicKey> = []

    init(cryptography: any ClientCryptography, restoring records: [RegistrantRecord] = []) {
        self.cryptography = cryptography
        for record in records { registrants[record.registrant] = record }
    }

    mutating func update(_ registrant: PublicKey, _ body: (inout RegistrantRecord) -> Void) {
        let before = registrants[registrant]
        var record = before ?? RegistrantRecord(registrant)
        body(&record)
        guard record != before else { return }
        registrants[registrant] = record
        changed.insert(registrant)
        affected.insert(registrant)
    }

    mutating func takeChanges() -> Set<PublicKey> {
        defer { changed = [] }
        return changed
    }

    mutating func takeAffected() -> Set<PublicKey> {
        defer { affected = [] }
        return affected
    }

    // MARK: Watching

    /// - Returns: Whether the registrant was not watched before.
    mutating func watch(_ registrant: PublicKey) -> Bool {
        let isNew = registrants[registrant]?.isWatched != true
        update(registrant) { $0.isWatched = true }
        return isNew
    }

    mutating func forget(_ registrant: PublicKey) {
        lookUps[registrant] = nil
        queries[registrant] = nil
        answered.remove(registrant)
        affected.insert(registrant)
        if registrants.removeValue(forKey: registrant) != nil { changed.insert(registrant) }
    }

    // MARK: Looking up advertisements

    /// Whether the look-up of the latest advertisement ended in this run, with or without a result.
    func isLookedUp(_ registrant: PublicKey) -> Bool { lookUps[registrant] == .found || lookUps[registrant] == .noStore }

    /// Whether the latest advertisement is being looked up: known rows may be outdated.
    func isLookingUp(_ registrant: PublicKey) -> Bool { lookUps[registrant] == .some(nil) }

    /// Begins a run with look-ups of these registrants: they may have advertised since the last one.
    mutating func beginRun(lookingUp registrants: [PublicKey], at now: Timestamp) {
        lookUps = Dictionary(uniqueKeysWithValues: registrants.map { ($0, nil) })
        queries = [:]
        answered = []
        for registrant in registrants where self.registrants[registrant] != nil {
            update(registrant) { record in
                let latest = (record.rows.map(\.learnedAt) + (record.advertisedAt.map { [$0.time] } ?? [])).max() ?? now
                // Not of a clock that was ahead.
                let newest = min(latest, now)
                let advertisedAt = record.advertisedAt?.time
                record.rows.removeAll { row in
                    if let withdrawal = row.withdrawal { return now.since(withdrawal.time) >= Self.withdrawnLife }
                    return newest.since(max(row.learnedAt, advertisedAt ?? row.learnedAt)) >= Self.unconfirmedLife
                }
            }
        }
    }

    /// - Returns: Whether a look-up is to begin: not after a successful one, and not while one is under way.
    mutating func beginLookUp(of registrant: PublicKey) -> Bool {
        guard !isLookingUp(registrant), lookUps[registrant] != .found else { return false }
        lookUps[registrant] = .some(nil)
        affected.insert(registrant)
        return true
    }

    /// Later advertisements may have been missed: look-ups that ended are made again when they are needed.
    mutating func expireLookUps() {
        lookUps = lookUps.filter { $0.value == nil }
    }

    mutating func endLookUps(of registrants: [PublicKey], _ result: LookUpResult) {
        for registrant in registrants where isLookingUp(registrant) {
            lookUps[registrant] = result
            affected.insert(registrant)
        }
    }

    /// Records that a message came from this device. Senders of whom nothing is known are not recorded: they may be anyone.
    mutating func noteActivity(of installationID: InstallationID, of registrant: PublicKey, at time: Timestamp) {
        guard registrants[registrant] != nil, installationID.isUsable else { return }
        update(registrant) { $0.noteActivity(of: installationID, at: time) }
    }

    /// Withdraws a device whose token a server refused, until a query confirms it. A token learned since then stays. The server may still be queried
    /// about the registrant.
    mutating func refused(_ refusal: NotificationMachine.Refusal, at now: Timestamp) {
        let device = refusal.device
        update(device.registrant) {
            $0.refused(
                device.installationID, at: refusal.server, token: refusal.token, refusal.isAbsent ? .absence : .refusal, at: now)
        }
    }

    /// Records that a server's answer has only these of the registrant's devices. Recently learned rows stay: the registration may have been on its
    /// way.
    mutating func noteAnswered(_ installations: Set<InstallationID>, of registrant: PublicKey, by server: PublicKey, at now: Timestamp) {
        guard registrants[registrant] != nil else { return }
        update(registrant) { record in
            for index in record.rows.indices where record.rows[index].server == server && !record.rows[index].isFresh(at: now) {
                if !installations.contains(record.rows[index].installationID) { record.rows[index].withdraw(.absence, at: now) }
            }
        }
    }

    mutating func noteQuery(about registrant: PublicKey, at now: Timestamp) {
        queries[registrant] = now
        affected.insert(registrant)
    }

    /// Records that a server answered about the registrant, or that an advertisement arrived.
    mutating func noteAnswer(about registrant: PublicKey) {
        if answered.insert(registrant).inserted { affected.insert(registrant) }
    }

    /// Whether the known rows are of this run: confirmed or replaced by what the network has. Without a store, and without a query, there was nobody to
    /// ask.
    func isAnswered(about registrant: PublicKey) -> Bool {
        answered.contains(registrant) || lookUps[registrant] == .found || lookUps[registrant] == .noStore && queries[registrant] == nil
    }

    // MARK: Finding

    /// Registrants whose contact code topics the client subscribes to.
    var watched: [PublicKey] { registrants.values.filter(\.isWatched).map(\.registrant) }

    func rows(of registrant: PublicKey) -> [RegistrantRecord.Row] {
        registrants[registrant]?.rows ?? []
    }

    func validRows(of registrant: PublicKey) -> [RegistrantRecord.Row] {
        rows(of: registrant).filter { $0.withdrawal == nil }
    }

    func places(of registrant: PublicKey) -> Set<RegistrantRecord.Row.Place> {
        Set(validRows(of: registrant).map(\.place))
    }

    /// The registrant's known devices.
    ///
    /// - Parameter own: This client's device, which is left out.
    func devices(of registrant: PublicKey, besides own: InstallationID? = nil, at now: Timestamp) -> KnownInstallations {
        let rows = Dictionary(grouping: rows(of: registrant), by: \.installationID)
        var known = KnownInstallations()
        known.usable = activeInstallations(of: registrant, limit: rows.count, at: now).filter { $0 != own }
        for (id, rows) in rows where id != own && !known.usable.contains(id) {
            if rows.contains(where: { $0.isFresh(at: now) }) {
                known.forOthers.append(id)
            } else if rows.contains(where: { $0.withdrawal?.reason != .absence }) {
                known.unconfirmed.append(id)
            }
        }
        known.forOthers.sort { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        return known
    }

    /// Whether answers to a query about the registrant are waited for. When all devices are known from recent advertisements, they are not.
    func awaitsAnswers(about registrant: PublicKey, _ known: KnownInstallations) -> Bool {
        known.usable.isEmpty || !known.unconfirmed.isEmpty || registrants[registrant]?.advertisements?.isEmpty ?? true
    }

    /// Whether every server that is known to have had one of the registrant's devices answered that it does not know it.
    func isGone(_ registrant: PublicKey, besides own: InstallationID? = nil) -> Bool {
        rows(of: registrant).allSatisfy { $0.installationID == own || $0.withdrawal?.reason == .absence }
    }

    /// Whether all rows were withdrawn by newer advertisements, or by servers that do not have the devices; true without rows.
    func isWithdrawn(_ registrant: PublicKey, besides own: InstallationID? = nil) -> Bool {
        rows(of: registrant).allSatisfy { row in
            row.installationID == own || row.withdrawal?.reason == .advertisement || row.withdrawal?.reason == .absence
        }
    }

    /// Whether servers are to be queried about the registrant: no device can be notified, or another one may be registered too.
    func needsQuery(about registrant: PublicKey, _ known: KnownInstallations, at now: Timestamp) -> Bool {
        if known.usable.isEmpty { return true }
        if known.unconfirmed.isEmpty { return false }
        guard let last = queries[registrant], now.since(last) < Self.queryPeriod else { return true }
        // Anyone can publish an old advertisement again, which withdraws the device that it is from.
        return rows(of: registrant).contains { row in
            known.unconfirmed.contains(row.installationID) && row.withdrawal.map { $0.time > last } ?? false
        }
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
        return !rows.isEmpty && rows.allSatisfy { $0.withdrawal?.reason == .absence }
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

    func servers(of registrant: PublicKey) -> Set<PublicKey> {
        Set(rows(of: registrant).map(\.server))
    }
}

enum LookUpResult: Sendable {
    /// The store was read, whether or not it has advertisements.
    case found
    /// No node has a store: earlier advertisements stay unknown.
    case noStore
    /// The store did not answer. The look-up is repeated when it is needed again.
    case noAnswer
}

/// A registrant's devices, by the use that can be made of them.
struct KnownInstallations: Sendable {
    /// Devices with a recent token, most recently active first.
    var usable: [InstallationID] = []
    /// Devices whose owner recently gave the token to other clients only.
    var forOthers: [InstallationID] = []
    /// Devices that were advertised long ago, or not in the latest advertisement, or refused by their token. They may be registered.
    var unconfirmed: [InstallationID] = []
}

extension InstallationID {
    /// Whether a server could accept the id, so that it is worth storing.
    var isUsable: Bool { (1...Self.maximumByteCount).contains(bytes.count) }
}
