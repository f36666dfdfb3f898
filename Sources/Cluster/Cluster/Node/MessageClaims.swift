import NodeAPI
import NodeMetrics
import Storage

/// Writes the claim of a message, as the first change of the transaction in which the message takes effect.
enum MessageClaims {
    private static let find = Query(
        ClaimTable.table, [ClaimTable.node, ClaimTable.kind], where: [.equal(ClaimTable.hour), .equal(ClaimTable.key)])
    private static let insert = Mutation(
        ClaimTable.table, .insert([ClaimTable.hour, ClaimTable.key, ClaimTable.node, ClaimTable.kind]))
    private static let takeOver = Mutation(
        ClaimTable.table, .update([ClaimTable.node], where: [.equal(ClaimTable.hour), .equal(ClaimTable.key)]))

    /// - Parameters:
    ///   - hour: the hour of the claim: see `ClaimWindow`.
    ///   - claim: the claim to insert, with the first node id of the process.
    ///   - takesOver: whether to take over another node's claim, in order to answer the message. The command must then be idempotent: it finds
    ///     its changes already stored, and does not repeat them.
    ///   - command: the message's effect. A command without changes inserts no claim.
    static func command<Outcome>(
        _ key: MessageKey, hour: ClaimWindow.Hour, claim: Claim, takesOver: Bool, with command: StoreCommand<Outcome>
    ) -> StoreCommand<Claimed<Outcome>> {
        let (hour, bytes) = (Value.integer(hour), Value.bytes(key.bytes))
        let node = Value.integer(Int64(bitPattern: claim.node.rawValue))
        // Most messages are not claimed yet, so the first read of the effect goes to the server together with that of the claim.
        let found = StoreCommand.find(find(hour, bytes)) { .done($0.first) }
        return found.then(besides: command.map(Claimed.here)) { row, effect in
            guard let row else {
                return try effect().claimed { $0.isEmpty ? [] : [insert(hour, bytes, node, .integer(Int64(claim.kind.rawValue)))] }
            }
            // An earlier transaction of this process was committed, but its reply was lost.
            if try row.unsigned(0) == claim.node.rawValue { return try effect() }
            guard takesOver else { return .done(.elsewhere((Claim.Kind(rawValue: Int(try row.integer(1))) ?? claim.kind).label)) }
            return try effect().claimed { _ in [takeOver(node, hour, bytes)] }
        }
    }
}

extension StoreCommand {
    /// Inserts changes before the command's own.
    ///
    /// - Parameter claim: returns the changes to insert, given those of the command.
    fileprivate func claimed<Inner>(
        _ claim: @escaping @Sendable ([Change]) -> [Change]
    ) -> StoreCommand where Outcome == Claimed<Inner> {
        switch self {
        case .read(let reads, let next): return .read(reads) { try next($0).claimed(claim) }
        case .apply(let changes, let outcome):
            let first = claim(changes)
            guard !first.isEmpty else { return .apply(changes) { outcome($0).withoutClaim } }
            let count = first.count(where: \.mutation.isInsert)
            return .apply(first + changes) { outcome(Array($0.dropFirst(count))) }
        }
    }
}

extension Claim.Kind {
    init?(_ kind: KindLabel) {
        switch kind {
        case .registration: self = .registration
        case .request: self = .request
        case .query: return nil
        }
    }

    fileprivate var label: KindLabel {
        switch self {
        case .registration: .registration
        case .request: .request
        }
    }
}

extension Claimed {
    fileprivate var withoutClaim: Claimed {
        if case .here(let outcome) = self { .unclaimed(outcome) } else { self }
    }
}
