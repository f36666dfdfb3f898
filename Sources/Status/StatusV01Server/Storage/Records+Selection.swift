import StatusProtocol
import StatusRules
import Storage

/// Reads the records that queries and requests select, within limits, because their content may be large.
extension Records {
    /// Number of records read at once.
    private static let chunkCount = 16
    /// Limit of the records that a query or request reads, in bytes.
    private static let byteLimit = 32 << 20

    private static let findSize = Query(
        V01Storage.record, [.column(V01Storage.changedAt), .column(.id), .byteCount(V01Storage.sealed)],
        where: [.equal(V01Storage.keyHash), .present(V01Storage.sealed)])

    private struct Found: Sendable {
        let keyHash: V01.KeyHash
        let changedAt: Int64
        let id: Int64
        let byteCount: Int
    }

    /// The records of these accounts, most recently changed first, up to the byte limit of a query.
    func records(of keyHashes: [V01.KeyHash]) -> StoreCommand<[V01.SelectedRecord]> {
        .read(keyHashes.map { Self.findSize(.bytes($0.stored)) }) { rows in
            var found: [Found] = []
            for (keyHash, rows) in zip(keyHashes, rows) {
                guard let row = rows.first else { continue }
                found.append(
                    Found(keyHash: keyHash, changedAt: try row.integer(0), id: try row.integer(1), byteCount: Int(try row.integer(2))))
            }
            found.sort { ($0.changedAt, $0.id) > ($1.changedAt, $1.id) }
            var byteCount = 0
            let admitted = found.prefix { record in
                byteCount += record.byteCount
                return byteCount <= Self.byteLimit
            }
            return read(admitted.map(\.keyHash)[...], [])
        }
    }

    private func read(_ left: ArraySlice<V01.KeyHash>, _ found: [V01.SelectedRecord]) -> StoreCommand<[V01.SelectedRecord]> {
        guard !left.isEmpty else { return .done(found) }
        let chunk = left.prefix(Self.chunkCount)
        return .read(chunk.map(Self.contentRead)) { rows in
            let more = try zip(chunk, rows).compactMap { keyHash, rows in
                try content(rows, of: keyHash).map { V01.SelectedRecord(registrant: keyHash, preferences: $0) }
            }
            return read(left.dropFirst(Self.chunkCount), found + more)
        }
    }

    /// The records and devices selected by access tokens.
    struct Selection: Sendable {
        var records: [AccessToken: V01.SelectedRecord] = [:]
        /// Row ids of devices.
        var devices: [V01.KeyHash: [InstallationID: Int64]] = [:]
    }

    /// The selection of these tokens at one identity of the node; nil if it exceeds the byte limit of a request.
    func selection(by tokens: [AccessToken], at server: ServerMark?) -> StoreCommand<Selection?> {
        .read(tokens.map { ownerRead($0, at: server) }) { rows in
            var owners: [(token: AccessToken, keyHash: V01.KeyHash)] = []
            for (token, rows) in zip(tokens, rows) {
                if let owner = try Self.owner(rows) { owners.append((token, owner)) }
            }
            return read(owners[...], selection: Selection(), byteCount: 0)
        }
    }

    private func read(
        _ left: ArraySlice<(token: AccessToken, keyHash: V01.KeyHash)>, selection: Selection, byteCount: Int
    ) -> StoreCommand<Selection?> {
        guard !left.isEmpty else { return .done(selection) }
        guard byteCount <= Self.byteLimit else { return .done(nil) }
        let chunk = left.prefix(Self.chunkCount)
        return .read(chunk.flatMap { [Self.contentRead($0.keyHash), Self.devicesRead($0.keyHash)] }) { rows in
            var (selection, byteCount) = (selection, byteCount)
            for (index, (token, keyHash)) in chunk.enumerated() {
                let content = rows[2 * index]
                guard let preferences = try self.content(content, of: keyHash) else { continue }
                byteCount += try content.first?.optionalBytes(1)?.count ?? 0
                selection.records[token] = V01.SelectedRecord(registrant: keyHash, preferences: preferences)
                selection.devices[keyHash] = try Self.devices(rows[2 * index + 1])
            }
            return read(left.dropFirst(Self.chunkCount), selection: selection, byteCount: byteCount)
        }
    }
}
