import NodeAPI
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import Storage
import Core

/// Decides on registrations and the changes they make, as a pure function of stored rows.
struct V01RegisterHandler: Sendable {
    struct Outcome: Sendable {
        /// nil is success.
        let error: V01.RegistrationResponse.ErrorType?
        let counter: Counter
        /// The stored record, with VERSION_MISMATCH.
        var preferences: V01.Preferences?
        /// The number of devices that are no longer registered.
        var endedDevices = 0
    }

    let rules: V01.RegisterRules
    let records: Records
    let limits: V01Limits
    let drain: Drain

    func change(_ claim: V01.RegisterClaim, at now: Timestamp) -> StoreCommand<Outcome> {
        let keyHash = claim.keyHash
        let reads =
            [Records.rowRead(keyHash), Records.devicesRead(keyHash), Records.surplusRead(keyHash)]
            + (claim.accessToken.map { records.holderReads($0, at: keyHash.server) } ?? [])
        return .read(reads) { found in
            let row = try Records.row(found[0])
            let decision = rules.decide(
                claim, stored: row?.head, isTokenTaken: try Records.isTaken(found.dropFirst(3), from: keyHash))
            return try carryOut(
                decision, claim: claim, row: row, devices: try Records.devices(found[1]), surplus: Records.removeSurplus(found[2]), at: now)
        }
    }

    /// - Parameter surplus: the changes that remove retired access tokens.
    private func carryOut(
        _ decision: V01.RegisterDecision, claim: V01.RegisterClaim, row: Records.Row?, devices: [InstallationID: Int64],
        surplus: [Change], at now: Timestamp
    ) throws -> StoreCommand<Outcome> {
        if case .keep = decision { return .done(Outcome(error: nil, counter: .v01Repeated)) }
        if drain.isOn { return .done(Outcome(error: .internalError, counter: .v01Refused)) }
        let isRegistered = row?.isRegistered ?? false
        let registeredDevices = isRegistered ? devices.count : 0
        switch decision {
        case .keep: return .done(Outcome(error: nil, counter: .v01Repeated))
        case .store(let preferences, let payload):
            let stored = isRegistered ? devices.count : nil
            if limits.refusesRecord(claim, devices: preferences.devices.count, stored: stored, at: now) { return overLimit }
            return .change(
                records.store(
                    preferences, payload: payload, as: claim.keyHash, mark: claim.mark, replacing: row, devices: devices, at: now)
                    + surplus,
                Outcome(error: nil, counter: .v01Stored, endedDevices: max(0, registeredDevices - preferences.devices.count)))
        case .end(let version):
            // An account that was never registered needs a new row, like a registration, so the same limits apply.
            if row == nil, limits.refusesRecord(claim, devices: 1, stored: nil, at: now) { return overLimit }
            return .change(
                Records.end(claim.keyHash, version: version, mark: claim.mark, replacing: row, devices: devices, at: now) + surplus,
                Outcome(error: nil, counter: .v01Ended, endedDevices: registeredDevices))
        case .refuse(.versionMismatch) where isRegistered:
            var bill = ReadingBill(.decision)
            if limits.refusesReading(row?.storedByteCount ?? 0, about: claim.keyHash, on: &bill, at: now) { return overLimit }
            return records.preferences(of: claim.keyHash).map {
                Outcome(error: .versionMismatch, counter: .v01Outdated, preferences: $0)
            }
        case .refuse(let error):
            return .done(Outcome(error: error, counter: error.counter))
        }
    }

    private var overLimit: StoreCommand<Outcome> { .done(Outcome(error: .internalError, counter: .v01OverLimit)) }
}

extension V01.RegistrationResponse.ErrorType {
    fileprivate var counter: Counter {
        switch self {
        case .malformedMessage: .v01Malformed
        case .versionMismatch: .v01Outdated
        case .unsupportedTokenType: .v01Unsupported
        case .unknown, .internalError: .v01Refused
        }
    }
}
