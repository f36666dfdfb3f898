import NodeAPI
import RateLimits
import StatusProtocol
import StatusRules
import Storage

/// Reads the records that queries and requests select, within limits, because their content may be large.
extension Records {
    /// Limit of the content that is read at once, in bytes.
    private static let chunkByteCount = 2 << 20
    /// Limit of the records that a query or request reads, in bytes.
    private static let byteLimit = 32 << 20
    /// Sealed content of records that requests select is read with its row up to this size, in bytes.
    private static let smallByteCount = 2 << 10
    /// The size in bytes that a row counts for without its content.
    private static let rowByteCount = 256

    private static let findSize = Query(
        V01Storage.record, [.column(V01Storage.changedAt), .column(.id), .byteCount(V01Storage.sealed)],
        where: [.equal(V01Storage.keyHash), .present(V01Storage.sealed)])
    private static let findSmallContent = Query(
        V01Storage.record,
        [.column(V01Storage.version), .small(V01Storage.sealed, byteLimit: smallByteCount), .byteCount(V01Storage.sealed)],
        where: [.equal(V01Storage.keyHash)])

    private struct Found: Sendable {
        let keyHash: V01.KeyHash
        let changedAt: Int64
        let id: Int64
        let byteCount: Int
    }

    /// The records of these accounts, most recently changed first, up to the byte limit of a query.
    ///
    /// - Parameter admits: whether the record of an account may be read, by its size in bytes. The bill is the query's.
    func records(
        of keyHashes: [V01.KeyHash],
        admits: @escaping @Sendable (inout ReadingBill, V01.KeyHash, _ byteCount: Int) -> Bool = { _, _, _ in true }
    ) -> StoreCommand<[V01.SelectedRecord]> {
        .read(keyHashes.map { Self.findSize(.bytes($0.stored)) }) { rows in
            var found: [Found] = []
            for (keyHash, rows) in zip(keyHashes, rows) {
                guard let row = rows.first else { continue }
                found.append(
                    Found(keyHash: keyHash, changedAt: try row.integer(0), id: try row.integer(1), byteCount: Int(try row.integer(2))))
            }
            found.sort { ($0.changedAt, $0.id) > ($1.changedAt, $1.id) }
            var byteCount = 0
            let within = found.prefix { record in
                byteCount += record.byteCount
                return byteCount <= Self.byteLimit
            }
            var bill = ReadingBill(.answer)
            // The free size goes to the smallest first.
            let admitted = Set(
                within.sorted { $0.byteCount < $1.byteCount }.filter { admits(&bill, $0.keyHash, Self.rowByteCount + $0.byteCount) }
                    .map(\.keyHash))
            return read(within.filter { admitted.contains($0.keyHash) }[...], [])
        }
    }

    private func read(_ left: ArraySlice<Found>, _ found: [V01.SelectedRecord]) -> StoreCommand<[V01.SelectedRecord]> {
        guard !left.isEmpty else { return .done(found) }
        let chunk = Self.chunk(of: left, \.byteCount)
        return .read(chunk.map { Self.contentRead($0.keyHash) }) { rows in
            let more = try zip(chunk, rows).compactMap { record, rows in
                try content(rows, of: record.keyHash).map { V01.SelectedRecord(registrant: record.keyHash, preferences: $0) }
            }
            return read(left.dropFirst(chunk.count), found + more)
        }
    }

    /// The first elements that may be read at once, at least one.
    private static func chunk<Element>(of left: ArraySlice<Element>, _ byteCount: (Element) -> Int) -> ArraySlice<Element> {
        var sum = 0
        return left.prefix { element in
            sum += byteCount(element)
            return sum == byteCount(element) || sum <= chunkByteCount
        }
    }

    /// The records and devices selected by access tokens.
    struct Selection: Sendable {
        var records: [AccessToken: V01.SelectedRecord] = [:]
        /// Row ids of devices.
        var devices: [V01.KeyHash: [InstallationID: Int64]] = [:]
        /// The tokens of records that may not be read.
        var refused: Set<AccessToken> = []
        /// The tokens of records that are left for another selection.
        var later: Set<AccessToken> = []
    }

    /// The limits of a selection.
    struct SelectionRoom: Sendable {
        /// The maximum number of devices of the records together.
        var deviceCount = LargeRequests.partCount
        /// Whether the first record is selected with any number of devices.
        var hasFirst = true
        /// The size in bytes that is not charged, if it is more than that of small records.
        var freeByteCount = ReadingBill.freeByteCount
    }

    private struct Owner: Sendable {
        let token: AccessToken
        let keyHash: V01.KeyHash
        var byteCount = 0
    }

    /// The selection of these tokens at one identity of the node, from the first as far as there is room; nil if it exceeds the byte limit of a
    /// request.
    ///
    /// - Parameter admits: whether the record of an account may be read, by its size in bytes. The bill is that of the tokens together.
    func selection(
        by tokens: [AccessToken], at server: ServerMark?, within room: SelectionRoom = SelectionRoom(),
        admits: @escaping @Sendable (inout ReadingBill, V01.KeyHash, _ byteCount: Int) -> Bool = { _, _, _ in true }
    ) -> StoreCommand<Selection?> {
        .read(tokens.map { ownerRead($0, at: server) }) { rows in
            let owners = try zip(tokens, rows).compactMap { token, rows in
                try Self.owner(rows).map { Owner(token: token, keyHash: $0) }
            }
            return read(owners, within: room, admits: admits)
        }
    }

    private func read(
        _ owners: [Owner], within room: SelectionRoom, admits: @escaping @Sendable (inout ReadingBill, V01.KeyHash, Int) -> Bool
    ) -> StoreCommand<Selection?> {
        .read(owners.flatMap { [Self.findSmallContent(.bytes($0.keyHash.stored)), Self.devicesRead($0.keyHash)] }) { rows in
            var (selection, large, byteCount, deviceCount) = (Selection(), [Owner](), 0, 0)
            for (index, var owner) in owners.enumerated() {
                let (content, devices) = (rows[2 * index], rows[2 * index + 1])
                deviceCount += devices.count
                guard deviceCount <= room.deviceCount || room.hasFirst && index == 0 else {
                    selection.later = Set(owners[index...].map(\.token))
                    break
                }
                owner.byteCount = Int(try content.first?.optionalInteger(2) ?? 0)
                byteCount += owner.byteCount
                if owner.byteCount > 0 { selection.devices[owner.keyHash] = try Self.devices(devices) }
                if owner.byteCount > Self.smallByteCount { large.append(owner) } else { try add(content, of: owner, to: &selection) }
            }
            guard byteCount <= Self.byteLimit else { return .done(nil) }
            // The free size goes to the smallest first.
            large.sort { $0.byteCount < $1.byteCount }
            let count = owners.count - selection.later.count
            var bill = ReadingBill(.decision, free: max(room.freeByteCount, count * Self.smallByteCount))
            _ = bill.charged(byteCount - large.reduce(0) { $0 + $1.byteCount })
            let admitted = large.filter { admits(&bill, $0.keyHash, $0.byteCount) }
            selection.refused = Set(large.map(\.token)).subtracting(admitted.map(\.token))
            return read(admitted[...], selection)
        }
    }

    private func read(_ left: ArraySlice<Owner>, _ selection: Selection) -> StoreCommand<Selection?> {
        guard !left.isEmpty else { return .done(selection) }
        let chunk = Self.chunk(of: left, \.byteCount)
        return .read(chunk.map { Self.contentRead($0.keyHash, byteCount: $0.byteCount) }) { rows in
            var selection = selection
            for (owner, rows) in zip(chunk, rows) { try add(rows, of: owner, to: &selection) }
            return read(left.dropFirst(chunk.count), selection)
        }
    }

    private func add(_ rows: [Storage.Row], of owner: Owner, to selection: inout Selection) throws {
        guard let preferences = try content(rows, of: owner.keyHash) else { return }
        selection.records[owner.token] = V01.SelectedRecord(registrant: owner.keyHash, preferences: preferences)
    }
}
