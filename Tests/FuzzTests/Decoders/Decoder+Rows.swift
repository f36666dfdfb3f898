import Core
import Waku
import WakuCrypto

@testable import Delivery
@testable import SessionProtocol
@testable import SessionServer
@testable import StatusProtocol
@testable import StatusServer
@testable import StatusV01Server
@testable import Storage

/// Rows of the store that were damaged, or changed by another program.
extension Decoder {
    private struct Refused: Error {}

    private static let sealer = Sealer(storageKey: SymmetricKey.random(), salt: nil)

    /// Commands that read rows. New ones are added at the end: corpora have their indexes.
    private static let commands: [@Sendable () -> StoreCommand<Void>] = {
        let now = Timestamp(rawValue: 1_700_000_000_000_000_000)
        let (bytes, device) = ([UInt8](repeating: 1, count: 64), DeviceID(StatusStorage.protocolNumber, row: 1))
        guard let keyHash = KeyHash(bytes: bytes), let v01 = V01.KeyHash(bytes: Array(bytes.prefix(32))),
            let delivery = DeliveryID(bytes: Array(bytes.prefix(32)))
        else { return [] }
        let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID("a"))
        let (registrations, records) = (Registrations(sealer), Records(sealer))
        var filter = RegistrationFilter()
        (filter.keyHashPrefix, filter.installationPrefix, filter.platform) = ("01", [1], .apn)
        (filter.isRegistered, filter.changedBefore, filter.changedSince) = (true, now, Timestamp(rawValue: 0))
        let filtered = filter
        let (subscriptions, seconds) = (Subscriptions(sealer), now.rawValue / 1_000_000_000)
        return [
            { registrations.state(of: key).map { _ in } }, { Registrations.head(of: key).map { _ in } },
            { registrations.registrations(of: [keyHash]).map { _ in } }, { Registrations.summaries(limit: 9).map { _ in } },
            { Registrations.expire(key, unchangedSince: now, at: now).map { _ in } },
            { Registrations.figures().map { _ in } }, { TopicKeyStorage(sealer).key(of: "topic").map { _ in } },
            { TopicKeyStorage.queryTopics(withTag: TopicTag(rawValue: 1)).map { _ in } },
            { records.preferences(of: v01).map { _ in } }, { records.records(of: [v01]).map { _ in } },
            { Records.summaries(limit: 9).map { _ in } }, { Records.expire(v01, unchangedSince: now, at: now).map { _ in } },
            { subscriptions.monitorEntries(of: [SubscriptionID(rawValue: 1)]).map { _ in } },
            { subscriptions.named([bytes], at: seconds).map { _ in } }, { Subscriptions.ofAccount(bytes).map { _ in } },
            { Subscriptions.ranges(of: 9).map { _ in } }, { Subscriptions.figures(at: seconds).map { _ in } },
            { Subscriptions.expire(at: seconds, limit: 9).map { _ in } },
            { DeliveryStorage.waitingDeliveries().map { _ in } }, { DeliveryStorage.traces(of: [1]).map { _ in } },
            { DeliveryStorage.posted(under: [1]).map { _ in } }, { DeliveryStorage.doubt(of: device).map { _ in } },
            { DeliveryStorage.states(of: [delivery]).map { _ in } }, { DeliveryStorage.stored([1]).map { _ in } },
            { DeliveryStorage.sealed(of: [device], limit: 9).map { _ in } }, { StoreIdentities.all().map { _ in } },
            { Sealer.stored(under: SymmetricKey.random()).map { _ in } }, { Registrations.summaries(filtered, limit: 9).map { _ in } },
        ]
    }()

    /// The rows that a command reads: its index, then a step for each value. Kinds of steps, by their lowest bits:
    ///
    ///     0  a value of the column, encrypted if the column is
    ///     1  null
    ///     2  bytes
    ///     3  text
    ///
    /// Bit 2 ends the rows of a query after the row of the value.
    static var storedRows: [Decoder] {
        let noRows = commands.indices.map { [UInt8($0)] }
        return [
            reading("rows of the store", noRows) { bytes in
                guard let first = bytes.first, Int(first) < commands.count else { throw Refused() }
                var steps = Steps(Array(bytes.dropFirst()))
                var command = commands[Int(first)]()
                while case .read(let reads, let next) = command { command = try next(reads.map { rows(for: $0, &steps) }) }
                if case .apply(let changes, let outcome) = command { outcome(changes.filter(\.mutation.isInsert).map { _ in 1 }) }
            }
        ]
    }

    /// The rows that a read finds: those of the steps, and without steps those of a store without rows.
    static func rows(for read: Read, _ steps: inout Steps) -> [Row] {
        let outputs = read.query.outputs
        // There always is one result.
        let isSummary = read.query.group == nil && outputs.allSatisfy(Self.isSummary)
        var (rows, isEnded) = ([Row](), false)
        while !isEnded, rows.count < 20 {
            var (values, sealed) = ([Value](), Int?.none)
            for (index, output) in outputs.enumerated() {
                guard let step = steps.next() ?? (isSummary ? (0, []) : nil) else { break }
                isEnded = isEnded || step.kind & 4 != 0
                if step.kind & 3 == 0, let column = content(of: output), column == read.query.table.sealed?.column { sealed = index }
                values.append(value(of: output, step.kind, step.bytes))
            }
            guard values.count == outputs.count else { break }
            if let sealed, case .bytes(let content) = values[sealed] { values[sealed] = encrypted(content, read, values) }
            rows.append(Row(values))
            isEnded = isEnded || isSummary
        }
        return rows
    }

    private static func value(of output: Query.Output, _ kind: UInt8, _ bytes: [UInt8]) -> Value {
        func integer(_ bytes: some Sequence<UInt8>) -> Value { .integer(bytes.reduce(0) { $0 << 8 | Int64($1) }) }
        // The engine's own numbers can't be damaged.
        if isCounted(output) { return integer(bytes.prefix(3)) }
        switch kind & 3 {
        case 0:
            switch column(of: output)?.kind {
            case .text: return .text(String(decoding: bytes, as: UTF8.self))
            case .bytes: return .bytes(bytes)
            case .integer, nil: return integer(bytes.suffix(8))
            }
        case 1: return .null
        case 2: return .bytes(bytes)
        default: return .text(String(decoding: bytes, as: UTF8.self))
        }
    }

    private static func column(of output: Query.Output) -> Column? {
        content(of: output) ?? extremum(output)
    }

    /// The column whose values it has.
    private static func content(of output: Query.Output) -> Column? {
        switch output {
        case .column(let column), .small(let column, _): column
        default: nil
        }
    }

    private static func extremum(_ output: Query.Output) -> Column? {
        switch output {
        case .minimum(let column), .maximum(let column): column
        case .column, .small, .isPresent, .byteCount, .count, .distinctCount: nil
        }
    }

    /// Of all rows together.
    private static func isSummary(_ output: Query.Output) -> Bool {
        switch output {
        case .count, .distinctCount, .minimum, .maximum: true
        case .column, .small, .isPresent, .byteCount: false
        }
    }

    private static func isCounted(_ output: Query.Output) -> Bool {
        switch output {
        case .count, .distinctCount, .byteCount, .isPresent: true
        case .column, .small, .minimum, .maximum: false
        }
    }

    /// The content of a row, encrypted for the values of the row and of the read's conditions.
    private static func encrypted(_ content: [UInt8], _ read: Read, _ values: [Value]) -> Value {
        let table = read.query.table
        let bound = SealedRows(table)?.boundColumns.map { column -> Value in
            if let index = read.query.outputs.firstIndex(of: .column(column)) { return values[index] }
            let index = read.query.conditions.firstIndex(of: .equal(column))
            return index.flatMap { $0 < read.arguments.count ? read.arguments[$0] : nil } ?? .null
        }
        guard let bound, table.sealed?.associatedData(bound) != nil else { return .bytes(content) }
        return sealer.seal(content, in: table, boundTo: bound)
    }
}
