import Cluster
import NodeAPI
import NodeMetrics
import Storage

/// Claims as rows: the first change of the transaction in which a message takes effect.
enum MessageClaims {
    private static let find = Query(
        ClaimTable.table, [ClaimTable.node, ClaimTable.kind], where: [.equal(ClaimTable.hour), .equal(ClaimTable.key)])
    private static let insert = Mutation(
        ClaimTable.table, .insert([ClaimTable.hour, ClaimTable.key, ClaimTable.node, ClaimTable.kind]))
    private static let takeOver = Mutation(
        ClaimTable.table, .update([ClaimTable.node], where: [.equal(ClaimTable.hour), .equal(ClaimTable.key)]))

    /// - Parameters:
    ///   - key: of the message.
    ///   - hour: see `ClaimWindow`.
    ///   - claim: with the id that the process began with.
    ///   - takesOver: whether to take the claim over, if it is another node's, to answer the message. The command must be one that finds what
    ///     it would change, and changes it not again.
    ///   - command: the message's effect. One that changes nothing claims nothing either.
    static func command<Outcome>(
        _ key: MessageKey, _ hour: ClaimWindow.Hour, _ claim: Claim, takesOver: Bool, _ command: StoreCommand<Outcome>
    ) -> StoreCommand<Claimed<Outcome>> {
        let (hour, bytes) = (Value.integer(hour), Value.bytes(key.bytes))
        let node = Value.integer(Int64(bitPattern: claim.node.rawValue))
        // Most messages are not claimed yet: what the effect reads first is read along.
        let found = StoreCommand.find(find(hour, bytes)) { .done($0.first) }
        return found.then(besides: command.map(Claimed.here)) { row, effect in
            guard let row else {
                return try effect().claimed { $0.isEmpty ? [] : [insert(hour, bytes, node, .integer(Int64(claim.kind.rawValue)))] }
            }
            // Known, because an earlier transaction of this process was committed without its reply.
            if try row.unsigned(0) == claim.node.rawValue { return try effect() }
            guard takesOver else { return .done(.elsewhere((Claim.Kind(rawValue: Int(try row.integer(1))) ?? claim.kind).label)) }
            return try effect().claimed { _ in [takeOver(node, hour, bytes)] }
        }
    }
}

extension StoreCommand {
    /// Adds changes before the command's own, which it gets.
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
