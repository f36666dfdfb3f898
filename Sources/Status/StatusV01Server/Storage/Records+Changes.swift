import Delivery
package import Core
package import StatusProtocol
import StatusRules
package import Storage

/// Stores and removes records. Changes depend on the account's row and devices, which are read first.
extension Records {
    private static let insert = Mutation(
        V01Storage.record,
        .insert([
            V01Storage.keyHash, V01Storage.version, V01Storage.changedAt, V01Storage.mark, V01Storage.sealed, V01Storage.recordToken,
            V01Storage.unfounded,
        ]))
    private static let replacedColumns = [
        V01Storage.version, V01Storage.changedAt, V01Storage.mark, V01Storage.sealed, V01Storage.recordToken, V01Storage.unfounded,
    ]
    // A row that the node itself ends, or takes a device from, keeps its version: conditions on the content notice that another node did so.
    private static let renew = Mutation(
        V01Storage.record, .update(replacedColumns, where: [.equal(.id), .equal(V01Storage.version), .present(V01Storage.sealed)]))
    private static let replace = Mutation(
        V01Storage.record, .update(replacedColumns, where: [.equal(.id), .equal(V01Storage.version), .absent(V01Storage.sealed)]))
    /// Sealing the same content again makes other bytes, so this fails after any change of the content.
    private static let replaceContent = Mutation(
        V01Storage.record, .update(replacedColumns, where: [.equal(.id), .equal(V01Storage.version), .equal(V01Storage.sealed)]))
    private static let endedColumns = [
        V01Storage.version, V01Storage.changedAt, V01Storage.mark, V01Storage.sealed, V01Storage.recordToken,
    ]
    /// Turns a registered row into a tombstone.
    private static let end = Mutation(
        V01Storage.record, .update(endedColumns, where: [.equal(.id), .equal(V01Storage.version), .present(V01Storage.sealed)]))
    /// Raises the version of a tombstone. An unfounded tombstone stays unfounded.
    private static let endAgain = Mutation(
        V01Storage.record, .update(endedColumns, where: [.equal(.id), .equal(V01Storage.version), .absent(V01Storage.sealed)]))
    private static let insertToken = Mutation(V01Storage.accessToken, .insert([V01Storage.token, V01Storage.keyHash]))
    private static let writeDevice = Mutation(
        V01Storage.device,
        .upsert([V01Storage.keyHash, V01Storage.installation, V01Storage.version, V01Storage.platform, V01Storage.sealedToken]))
    private static let removeDevice = Mutation(V01Storage.device, .delete(where: [.equal(.id)]))

    /// Stores a record, replacing any row of its account. Devices that it does not contain are deleted, with their pending notifications;
    /// those of disabled devices are deleted too.
    ///
    /// - Parameters:
    ///   - preferences: the decoded `payload`. Its access token must not belong to another account.
    ///   - payload: the record as received.
    ///   - row: the current row of the account, nil if there is none; the change fails if the row has changed its version, was ended, or is no
    ///     longer a tombstone.
    ///   - oldContent: the sealed content of the row, if the new record is made from it: the change fails if it has changed.
    func store(
        _ preferences: V01.Preferences, payload: [UInt8], as keyHash: V01.KeyHash, mark: V01.RegisterMark?, replacing row: Row?,
        madeFrom oldContent: [UInt8]? = nil, devices: [InstallationID: Int64], at now: Timestamp
    ) -> [Change] {
        let version = preferences.version
        let token = tokenHash(preferences.accessToken, at: keyHash.server)
        let content = sealer.seal(payload, in: V01Storage.record, boundTo: Self.binding(keyHash, version))
        let values: [Value] = [.integer(Int64(bitPattern: version)), .integer(now.rawValue), Value(mark?.rawValue), content, token, .null]
        var changes: [Change] = []
        if let row {
            let found = values + [.integer(row.id), row.storedVersion]
            if let oldContent {
                changes.append(Self.replaceContent.change(found + [.bytes(oldContent)]))
            } else {
                changes.append((row.isRegistered ? Self.renew : Self.replace).change(found))
            }
        } else {
            changes.append(Self.insert.change([.bytes(keyHash.stored)] + values))
        }
        if token != Value(row?.token) {
            if let old = row?.token { changes += Self.retire(old, of: keyHash, at: now) }
            changes.append(Self.insertToken(token, .bytes(keyHash.stored)))
        }
        for device in preferences.devices {
            guard let platform = device.platform else { continue }
            changes.append(
                Self.writeDevice(
                    .bytes(keyHash.stored), .bytes(device.installationID.bytes), .integer(Int64(bitPattern: version)),
                    .integer(Int64(platform.rawValue)),
                    sealer.seal(
                        device.token.bytes, in: V01Storage.device,
                        boundTo: Self.deviceBinding(keyHash, version: version, installation: device.installationID))))
        }
        let kept = Set(preferences.devices.map(\.installationID))
        let disabled = preferences.devices.lazy.filter { !$0.isEnabled }.compactMap { devices[$0.installationID] }
        return changes + Self.remove(devices.lazy.filter { !kept.contains($0.key) }.map(\.value))
            + disabled.flatMap { DeliveryStorage.forget(Self.device($0)) }
    }

    /// Turns a row into a tombstone: only key hash and version remain, and for a time the access token's keyed hash. Deletes the devices' pending
    /// notifications. A tombstone of an account that was never registered is marked as unfounded, and deleted later: see ``unfounded``. Fails if the row
    /// has changed its version, or was ended.
    static func end(
        _ keyHash: V01.KeyHash, version: UInt64, mark: V01.RegisterMark?, replacing row: Row?, devices: [InstallationID: Int64],
        wasRegistered: Bool = false, at now: Timestamp
    ) -> [Change] {
        let values: [Value] = [.integer(Int64(bitPattern: version)), .integer(now.rawValue), Value(mark?.rawValue), .null, .null]
        guard let row else { return [insert.change([.bytes(keyHash.stored)] + values + [wasRegistered ? .null : .integer(1)])] }
        return [(row.isRegistered ? end : endAgain).change(values + [.integer(row.id), row.storedVersion])]
            + (row.token.map { retire($0, of: keyHash, at: now) } ?? []) + remove(devices.values)
    }

    private static func remove(_ devices: some Sequence<Int64>) -> [Change] {
        devices.flatMap { [removeDevice(.integer($0))] + DeliveryStorage.forget(device($0)) }
    }

    // MARK: By the node itself

    private static let findDevice = Query(
        V01Storage.device, [V01Storage.keyHash, V01Storage.installation, V01Storage.version], where: [.idAmong])

    /// Removes a device whose token is invalid from its record; with its last device the record becomes a tombstone. The version stays, so that
    /// the account's next record is newer, and so does the time of its last renewal. Does nothing if the record has changed its version.
    func endDevice(_ id: Int64, version: UInt64, at now: Timestamp) -> StoreCommand<Void> {
        .find(Self.findDevice(ids: [id])) { rows in
            guard let found = rows.first, try found.unsigned(2) == version, let keyHash = V01.KeyHash(stored: try found.bytes(0))
            else { return .change([]) }
            let installation = InstallationID(bytes: try found.bytes(1))
            return .read([Self.rowRead(keyHash), Self.devicesRead(keyHash), Self.contentRead(keyHash)]) { rows in
                guard let row = try Self.row(rows[0]), row.head.version == version, let sealed = try Self.sealedContent(rows[2]),
                    var preferences = try content(rows[2], of: keyHash)
                else { return .change([]) }
                let devices = try Self.devices(rows[1])
                preferences.devices.removeAll { $0.installationID == installation }
                guard !preferences.devices.isEmpty else {
                    return .change(Self.end(keyHash, version: version, mark: nil, replacing: row, devices: devices, at: now))
                }
                return .change(
                    store(
                        preferences, payload: preferences.encoded(), as: keyHash, mark: nil, replacing: row, madeFrom: sealed,
                        devices: devices, at: row.changedAt))
            }
        }
    }

    private static let findUnchanged = Query(
        V01Storage.record, [V01Storage.keyHash], where: [.less(V01Storage.changedAt), .present(V01Storage.sealed)])
    private static let findEnding = Query(
        V01Storage.record, [.id, V01Storage.version],
        where: [.equal(V01Storage.keyHash), .present(V01Storage.sealed), .less(V01Storage.changedAt)])

    /// Records that have not been renewed since `time`. Reads all rows.
    static func records(unchangedSince time: Timestamp) -> StoreCommand<[V01.KeyHash]> {
        .find(findUnchanged(.integer(time.rawValue), limit: 100_000)) { rows in
            .done(try rows.compactMap { V01.KeyHash(stored: try $0.bytes(0)) })
        }
    }

    /// Unregisters an account, keeping its version; does nothing and returns false if it was renewed in the meantime. The content is not read.
    static func expire(_ keyHash: V01.KeyHash, unchangedSince time: Timestamp, at now: Timestamp) -> StoreCommand<Bool> {
        .read([findEnding(.bytes(keyHash.stored), .integer(time.rawValue)), rowRead(keyHash), devicesRead(keyHash)]) { found in
            // Another node may have committed a renewal between the reads.
            guard let old = found[0].first, let row = try row(found[1]), row.head.version == (try old.unsigned(1)) else {
                return .done(false)
            }
            let devices = try devices(found[2])
            return .change(end(keyHash, version: row.head.version, mark: nil, replacing: row, devices: devices, at: now), true)
        }
    }

    /// Removes a record as if its owner had unregistered; false if there is none.
    package static func remove(_ keyHash: V01.KeyHash, at now: Timestamp) -> StoreCommand<Bool> {
        .read([rowRead(keyHash), devicesRead(keyHash)]) { found in
            guard let row = try row(found[0]), row.isRegistered else { return .done(false) }
            return .change(
                end(keyHash, version: row.head.version, mark: nil, replacing: row, devices: try devices(found[1]), at: now), true)
        }
    }

    /// Tombstones of accounts that were never registered.
    static let unfounded = UnfoundedTombstones(V01Storage.record, marked: V01Storage.unfounded, changedAt: V01Storage.changedAt)
}
