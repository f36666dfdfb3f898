package import StatusProtocol
package import StatusRules
package import Storage
import Core
package import RateLimits
import Waku

extension Registrations {
    /// Maximum number of installations that one call reads: far more than fit into an answer.
    private static let installationLimit = 20_000
    /// Limit of the content read at once, in bytes.
    private static let chunkByteCount = 8 << 20
    /// Number of registrants whose rows are read at once.
    static let registrantChunk = 32
    /// The size in bytes that a row counts for without its content.
    private static let rowByteCount = 256

    private static let findInstallations = Query(
        StatusStorage.registration,
        [
            .column(.id), .column(StatusStorage.installation), .column(StatusStorage.version), .column(StatusStorage.changedAt),
            .byteCount(StatusStorage.sealed), .column(StatusStorage.neverAsked),
        ], where: [.equal(StatusStorage.queryTopic), .equal(StatusStorage.keyHash)], index: StatusStorage.registrantIndexName)
    private static let findContents = Query(
        StatusStorage.registration, [.id, StatusStorage.sealed], where: [.idAmong, .present(StatusStorage.sealed)])

    private struct Installation: Sendable {
        let id: Int64
        let key: RegistrationKey
        let version: UInt64
        let changedAt: Int64
        let byteCount: Int
        let isNeverAsked: Bool
    }

    /// The registrations of these registrants, most recently changed first, until the budget is spent. The sizes of stored registrations decide what
    /// is read: lists that no answer contains can be large too. Once rows are refused, those of further registrants are not read.
    ///
    /// - Parameters:
    ///   - keyHashes: the registrants, without duplicates.
    ///   - budget: limits the rows; nil for all.
    ///   - isServed: whether registrations with this identity are read.
    ///   - admits: whether the rows of a registrant may be read, and then whether their content may, by the size in bytes within the budget. The bill is
    ///     the query's.
    ///   - noteAsked: called with the rows of registrations that no one had asked for.
    package func registrations(
        of keyHashes: [KeyHash], within budget: QueryBudget? = nil, isServed: @escaping @Sendable (ServerMark?) -> Bool = { _ in true },
        admits: @escaping @Sendable (inout ReadingBill, KeyHash, _ byteCount: Int) -> Bool = { _, _, _ in true },
        noteAsked: @escaping @Sendable ([Int64]) -> Void = { _ in }
    ) -> StoreCommand<[StoredRegistration]> {
        Self.find(keyHashes[...], Found(), isServed: isServed, admits: admits).then { found in
            var (installations, bill) = (found.installations, found.bill)
            let neverAsked = installations.filter(\.isNeverAsked).map(\.id)
            if !neverAsked.isEmpty { noteAsked(neverAsked) }
            if installations.count > 1 { installations.sort { ($0.changedAt, $0.id) > ($1.changedAt, $1.id) } }
            if var budget { installations = Array(installations.prefix { budget.admits(storedByteCount: $0.byteCount) }) }
            let sizes = installations.reduce(into: [:]) { $0[$1.key.keyHash, default: 0] += $1.byteCount }
            // The free size goes to the smallest first.
            let refused = Set(sizes.sorted { $0.value < $1.value }.filter { !admits(&bill, $0.key, $0.value) }.map(\.key))
            if !refused.isEmpty { installations.removeAll { refused.contains($0.key.keyHash) } }
            return read(installations[...], found: [])
        }
    }

    private struct Found: Sendable {
        var installations: [Installation] = []
        var bill = ReadingBill(.answer)
    }

    private static func find(
        _ left: ArraySlice<KeyHash>, _ found: Found, isServed: @escaping @Sendable (ServerMark?) -> Bool,
        admits: @escaping @Sendable (inout ReadingBill, KeyHash, Int) -> Bool
    ) -> StoreCommand<Found> {
        guard !left.isEmpty, found.installations.count < installationLimit else { return .done(found) }
        let chunk = left.prefix(registrantChunk)
        return .read(chunk.map { findInstallations(topicValue(of: $0), .bytes($0.bytes), limit: installationLimit) }) { rows in
            var (found, isRefused) = (found, false)
            for (keyHash, rows) in zip(chunk, rows).sorted(by: { $0.1.count < $1.1.count }) where !rows.isEmpty {
                guard admits(&found.bill, keyHash, rows.count * rowByteCount) else {
                    isRefused = true
                    continue
                }
                for row in rows where found.installations.count < installationLimit {
                    let key = RegistrationKey(keyHash: keyHash, storedInstallation: try row.bytes(1))
                    guard isServed(key.server) else { continue }
                    found.installations.append(
                        Installation(
                            id: try row.integer(0), key: key, version: try row.unsigned(2), changedAt: try row.integer(3),
                            byteCount: Int(try row.integer(4)), isNeverAsked: !row.isNull(5)))
                }
            }
            return isRefused ? .done(found) : find(left.dropFirst(registrantChunk), found, isServed: isServed, admits: admits)
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
                guard let sealed = contents[installation.id],
                    let registration = try open(sealed, of: installation.key, version: installation.version)
                else { continue }
                found.append(
                    StoredRegistration(
                        key: installation.key, registration: registration, storedAt: Timestamp(rawValue: installation.changedAt)))
            }
            return read(rest, found: found)
        }
    }
}
