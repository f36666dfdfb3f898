package import StatusProtocol
package import StatusRules
package import Storage
import Core
import Waku

extension Registrations {
    /// Maximum number of installations that one call reads: far more than fit into an answer.
    private static let installationLimit = 20_000
    /// Limit of the content read at once, in bytes.
    private static let chunkByteCount = 8 << 20

    private static let findInstallations = Query(
        StatusStorage.registration,
        [
            .column(.id), .column(StatusStorage.installation), .column(StatusStorage.version), .column(StatusStorage.changedAt),
            .byteCount(StatusStorage.sealed), .column(StatusStorage.neverAsked),
        ], where: [.equal(StatusStorage.keyHash), .present(StatusStorage.sealed)])
    private static let findContents = Query(
        StatusStorage.registration, [.id, StatusStorage.sealed], where: [.idAmong, .present(StatusStorage.sealed)])

    private struct Installation: Sendable {
        let id: Int64
        let key: RegistrationKey
        let version: UInt64
        let changedAt: Int64
        let byteCount: Int
    }

    /// The registrations of these registrants, most recently changed first, until the budget is spent. The sizes of stored registrations decide what
    /// is read: lists that no answer contains can be large too.
    ///
    /// - Parameters:
    ///   - keyHashes: the registrants, without duplicates.
    ///   - budget: limits the rows; nil for all.
    ///   - isServed: whether registrations with this identity are read.
    ///   - admits: whether the registrations of a registrant may be read, by their size in bytes within the budget.
    ///   - noteAsked: called with the rows of registrations that no one had asked for.
    package func registrations(
        of keyHashes: [KeyHash], within budget: QueryBudget? = nil, isServed: @escaping @Sendable (ServerMark?) -> Bool = { _ in true },
        admits: @escaping @Sendable (KeyHash, _ byteCount: Int) -> Bool = { _, _ in true },
        noteAsked: @escaping @Sendable ([Int64]) -> Void = { _ in }
    ) -> StoreCommand<[StoredRegistration]> {
        let reads = keyHashes.map { Self.findInstallations(.bytes($0.bytes), limit: Self.installationLimit) }
        return .read(reads) { found in
            var (installations, neverAsked) = ([Installation](), [Int64]())
            for (keyHash, rows) in zip(keyHashes, found) where installations.count < Self.installationLimit {
                for row in rows {
                    let key = RegistrationKey(keyHash: keyHash, storedInstallation: try row.bytes(1))
                    guard isServed(key.server) else { continue }
                    if !row.isNull(5) { neverAsked.append(try row.integer(0)) }
                    installations.append(
                        Installation(
                            id: try row.integer(0), key: key, version: try row.unsigned(2), changedAt: try row.integer(3),
                            byteCount: Int(try row.integer(4))))
                }
            }
            if !neverAsked.isEmpty { noteAsked(neverAsked) }
            if installations.count > 1 { installations.sort { ($0.changedAt, $0.id) > ($1.changedAt, $1.id) } }
            if var budget { installations = Array(installations.prefix { budget.admits(storedByteCount: $0.byteCount) }) }
            let sizes = installations.reduce(into: [:]) { $0[$1.key.keyHash, default: 0] += $1.byteCount }
            let refused = sizes.filter { !admits($0, $1) }
            if !refused.isEmpty { installations.removeAll { refused[$0.key.keyHash] != nil } }
            return read(installations[...], found: [])
        }
    }

    private func read(_ left: ArraySlice<Installation>, found: [StoredRegistration]) -> StoreCommand<[StoredRegistration]> {
        guard let first = left.first else { return .done(found) }
        var (end, byteCount) = (left.startIndex + 1, first.byteCount)
        while end < left.endIndex, byteCount + left[end].byteCount <= Self.chunkByteCount {
            byteCount += left[end].byteCount
            end += 1
        }
        let (chunk, rest) = (left[..<end], left[end...])
        return .find(Self.findContents(ids: chunk.map(\.id))) { rows in
            let contents = Dictionary(try rows.map { (try $0.integer(0), try $0.bytes(1)) }) { first, _ in first }
            var found = found
            for installation in chunk {
                guard let sealed = contents[installation.id] else { continue }
                found.append(
                    StoredRegistration(
                        key: installation.key, registration: try open(sealed, of: installation.key, version: installation.version),
                        storedAt: Timestamp(rawValue: installation.changedAt)))
            }
            return read(rest, found: found)
        }
    }
}
