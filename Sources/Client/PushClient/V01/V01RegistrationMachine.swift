import Core
import StatusProtocol
import WakuCrypto

/// Keeps the account's record registered with several servers, with the same content. Input: settings, answers and time. Output: Registers to send.
///
/// A record lists all devices of the account. This client changes only its own device's part, and keeps the others as a server returned them with
/// VERSION_MISMATCH: version 0.1 has no other way to learn of them, and no signature of theirs. Devices invented by a server would be kept too.
struct V01RegistrationMachine: RegistrationStates {
    /// Limits the version jump that a server can claim: a larger one would use up the version numbers for all servers, and is rejected.
    static let versionStepLimit: UInt64 = 1 << 32
    /// The maximum encoded length of the account's other devices: with more, the record could exceed the servers' limit.
    static let otherDevicesByteLimit = V01.Preferences.byteLimit / 2

    let identity: PrivateKey
    var own: V01OwnRecord
    var isOwnChanged: Bool
    var servers: [PublicKey: V01ServerRecord] = [:]
    var order: [PublicKey] = []
    var actions: [RegistrationAction<Version01>] = []
    var changed: Set<PublicKey> = []

    init(identity: PrivateKey, own: V01OwnRecord?, restoring records: [V01ServerRecord], installationID: InstallationID, at now: Timestamp)
    {
        self.identity = identity
        self.own = own ?? V01OwnRecord(installationID: installationID, time: now)
        isOwnChanged = own == nil
        restore(records)
    }

    // MARK: Settings

    /// Sets the profile and the servers to register with. Sends nothing when nothing changed, unless it is to be sent again.
    mutating func register(_ profile: V01DeviceProfile, with wanted: [PublicKey], again: Bool = false) {
        let old = own.isReceiving ? own.profile : nil
        let revokesToken = own.profile.map { profile.common.revokesToken(of: $0.common) } ?? false
        let isSame = own.content != nil && !revokesToken && old.map { profile.common.isRegisteredAs($0.common) } ?? false
        isOwnChanged = true
        own.profile = profile
        own.isReceiving = true
        own.servers = wanted.reduce(into: []) { list, server in if !list.contains(server) { list.append(server) } }
        for server in own.servers where servers[server] == nil { add(V01ServerRecord(server)) }
        if own.accessToken.isEmpty {
            own.accessToken = .random()
        } else if revokesToken, !otherHasList {
            replaceToken()
        }
        // A server that was sent this version with other content, or a later version, would refuse it.
        let isOutdated = own.servers.contains { key in
            guard let record = servers[key], let version = own.content?.version else { return false }
            return switch record.phase {
            case .idle: record.accepted != version && record.lastVersion >= version
            case .left: record.lastVersion >= version
            case .pending, .refused: false
            }
        }
        if !isSame || isOutdated || again {
            changeContent()
        } else if order.contains(where: { !own.servers.contains($0) && servers[$0]?.isWanted == true }) {
            renewFarewell()
        }
        reconcile()
    }

    mutating func setReceiving(_ isReceiving: Bool) {
        if isReceiving, let profile = own.profile { return register(profile, with: own.servers) }
        own.isReceiving = isReceiving
        isOwnChanged = true
        guard !isReceiving else { return }
        changeContent()
        reconcile()
    }

    // MARK: The record

    /// Whether another device of the account gives the token to its own contacts. Only that device knows them, and they would lose a new token: a
    /// contact that lost the right here keeps the token meanwhile.
    private var otherHasList: Bool { own.others.contains { $0.filters?.allowedKeyList.isEmpty == false } }

    mutating func replaceToken() {
        own.revoke(own.accessToken)
        own.accessToken = .random()
        own.isTokenNew = true
        setOthers(own.others, haveOtherToken: true)
    }

    /// Called after a change by the application: ends pauses, and retries refused registrations.
    private mutating func changeContent() {
        own.generation += 1
        for key in order { update(key) { $0.resetCounters() } }
        renewContent()
    }

    /// Renews the record for servers being left, while the other servers keep theirs.
    private mutating func renewFarewell() {
        let (version, isExhausted) = own.highestVersion.addingReportingOverflow(1)
        guard !isExhausted else { return }
        own.farewell = V01Content(version: version, devices: own.others, accessToken: own.accessToken)
    }

    /// Stores the account's other devices. Lists of allowed keys that contain another token are rebuilt with the record's token.
    private mutating func setOthers(_ devices: [V01.Device], haveOtherToken: Bool) {
        isOwnChanged = true
        var devices = devices
        let filtered = devices.indices.filter { devices[$0].filters?.allowedKeyList.isEmpty == false }
        if haveOtherToken, !filtered.isEmpty {
            let list = V01DeviceProfile.allowedKeyList(own.accessToken, own.profile?.contacts ?? [], identity)
            for index in filtered { devices[index].filters?.allowedKeyList = list }
        }
        own.otherDevices = V01.Preferences(devices: devices, version: own.otherDevicesVersion, accessToken: AccessToken("")).encoded()
    }

    /// Makes the next version of the record, one above the highest published version. Unpublished versions are reused: skipping versions could
    /// replace a server's record before the client learned of the other devices in it.
    ///
    /// - Returns: false when the version numbers are used up.
    @discardableResult
    mutating func renewContent() -> Bool {
        let (version, isExhausted) = own.highestVersion.addingReportingOverflow(1)
        guard !isExhausted else { return false }
        let others = own.others
        isOwnChanged = true
        own.sameSince = nil
        if own.isReceiving, let profile = own.profile {
            let device = profile.device(own.installationID, token: own.accessToken, identity: identity)
            own.content = V01Content(version: version, devices: others + [device], accessToken: own.accessToken)
        } else {
            own.content = nil
        }
        own.farewell = V01Content(version: version, devices: others, accessToken: own.accessToken)
        return true
    }

    /// Makes the next version of the record, with the same devices and token.
    private mutating func renewVersion() {
        let (version, isExhausted) = own.highestVersion.addingReportingOverflow(1)
        guard !isExhausted, let content = own.content, let preferences = content.preferences else { return }
        isOwnChanged = true
        own.sameSince = own.sameSince ?? content.version
        own.content = V01Content(version: version, devices: preferences.devices, accessToken: preferences.accessToken)
        own.farewell = V01Content(version: version, devices: own.others, accessToken: own.accessToken)
    }

    /// Takes over the account's other devices from a record that a server returned. Devices that servers would reject are left out, since
    /// one of them would make the whole record unacceptable; so is this device under an earlier installation id.
    mutating func merge(_ returned: V01.Preferences) {
        guard returned.version > own.otherDevicesVersion else { return }
        own.otherDevicesVersion = returned.version
        if returned.accessToken.isUUID, !own.isTokenNew, !own.isRevoked(returned.accessToken) { own.accessToken = returned.accessToken }
        var seen: Set<InstallationID> = [own.installationID]
        let others =
            returned.unregister
            ? []
            : returned.devices.filter { device in
                let isOwn = device.token == own.profile?.deviceToken && device.platform == own.profile?.platform
                return device.platform != nil && !device.token.isEmpty && !isOwn
                    && device.installationID.isUsable && seen.insert(device.installationID).inserted
            }
        setOthers(Self.fitting(others), haveOtherToken: returned.accessToken != own.accessToken)
    }

    /// As many devices as fit into a record beside this device.
    private static func fitting(_ devices: [V01.Device]) -> [V01.Device] {
        var byteCount = 0
        return devices.prefix(V01.Preferences.deviceLimit - 1).filter { device in
            let own = V01.Preferences(devices: [device], version: 0, accessToken: AccessToken("")).encoded().count
            guard byteCount + own <= otherDevicesByteLimit else { return false }
            byteCount += own
            return true
        }
    }

    // MARK: Target state

    mutating func resume(at now: Timestamp, jitter: inout Jitter) {
        for key in order {
            // Not being published any more. It is sent only if the settings are still the same.
            if servers[key]?.attempt?.state == .unsent { update(key) { $0.attempt?.state = .paused(until: StoredTime(now)) } }
            if let record = servers[key], record.isRegistered, record.renewal == nil {
                update(key) { $0.renewal = RegistrationRenewal.time(ofUnknownAgeAt: now, jitter: jitter.next()) }
            }
        }
        reconcile()
    }

    mutating func reconcile() {
        for key in order {
            let isWanted = own.isReceiving && own.servers.contains(key)
            if servers[key]?.isWanted != isWanted { update(key) { $0.isWanted = isWanted } }
        }
        for key in order { reconcile(key) }
    }

    private mutating func reconcile(_ key: PublicKey) {
        guard let record = servers[key] else { return }
        // One Register at a time: the next one begins after the answer or the deadline of this one.
        if let attempt = record.attempt, attempt.isInFlight { return }
        if !record.isWanted, !record.mayBeRegistered {
            if record.phase != .left { update(key) { $0.phase = .left } }
            return
        }
        if isKept(key) { return }
        guard let content = record.isWanted ? own.content : own.farewell else { return }
        var pause: AttemptState?
        switch record.phase {
        case .pending(let attempt):
            if attempt.content == content, attempt.isFarewell != record.isWanted { return }
            // Servers whose pause began before the application's last change are asked at once.
            if attempt.generation == own.generation { pause = attempt.state }
        case .refused(_, let generation) where record.isWanted && generation == own.generation: return
        case .idle where record.isWanted && record.accepted == content.version: return
        case .left where !record.isWanted: return
        case .idle, .refused, .left: break
        }
        let register = V01.Register(payload: content.payload, for: key, signedBy: identity)
        var attempt = V01ServerRecord.Attempt(
            content: content, isFarewell: !record.isWanted, generation: own.generation, signature: register.signature)
        if let pause { attempt.state = pause }
        update(key) {
            // The record that it accepted last did not have this device.
            if $0.phase == .left { $0.accepted = nil }
            $0.phase = .pending(attempt)
            $0.mayBeRegistered = true
        }
        send(key)
    }

    mutating func send(_ key: PublicKey) {
        guard let attempt = servers[key]?.attempt, attempt.state == .unsent else { return }
        actions.append(.send(server: key, attempt.register))
    }

    mutating func wake(at now: Timestamp, jitter: inout Jitter) {
        var isRenewed = false
        for key in order {
            guard let record = servers[key], let due = record.nextWakeUp, due <= now else { continue }
            switch record.attempt?.state {
            case nil:
                update(key) { $0.renewal = RegistrationRenewal.time(afterAcceptanceAt: now, jitter: jitter.next()) }
                isRenewed = true
            case .sent: pause(key, at: now, jitter: jitter.next())
            case .paused:
                update(key) { $0.attempt?.state = .unsent }
                send(key)
            case .unsent, .checking: break
            }
        }
        // A version of the record is for all servers.
        if isRenewed { renewVersion() }
        reconcile()
    }

    // MARK: Advertised rows

    var hasSomethingToAdvertise: Bool { !advertisedRows.isEmpty }
    var advertisesAtStart: Bool { own.isReceiving && hasSomethingToAdvertise || own.nextAdvertisement != nil }

    /// Whether the server accepted this content. While it is renewed, the former version holds.
    private func has(_ content: V01Content, _ record: V01ServerRecord) -> Bool {
        if record.attempt == nil, record.accepted == content.version { return true }
        guard record.isWanted, record.isRegistered, let accepted = record.accepted, let first = own.sameSince else { return false }
        return accepted >= first
    }

    /// The rows to advertise: each device of the record at each server that has it, without the token for devices that give it to contacts only.
    var advertisedRows: [V01.AdvertisementInfo] {
        order.flatMap { key -> [V01.AdvertisementInfo] in
            guard let record = servers[key], let content = record.isWanted || isKept(key) ? own.content : own.farewell,
                has(content, record), let preferences = content.preferences, !preferences.unregister
            else { return [] }
            let devices = preferences.devices.filter(\.isEnabled)
            let isFiltered = devices.contains { $0.filters?.allowedKeyList.isEmpty == false }
            let token = isFiltered ? AccessToken("") : preferences.accessToken
            return devices.map { V01.AdvertisementInfo(publicKey: key.compressed, accessToken: token, installationID: $0.installationID) }
        }
    }
}

extension V01Content {
    /// Without devices, ends the account's registration.
    init(version: UInt64, devices: [V01.Device], accessToken: AccessToken) {
        let preferences =
            devices.isEmpty
            ? V01.Preferences(version: version, unregister: true, accessToken: AccessToken(""))
            : V01.Preferences(devices: devices, version: version, accessToken: accessToken)
        self.init(version: version, payload: preferences.encoded())
    }
}
