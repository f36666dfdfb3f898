import SessionProtocol
package import Storage

/// A `sig_ts` that was ahead, exported for another database of the same node: with the name of its subscription, `AheadTime.Kind`, and Unix seconds.
package typealias AheadTimeExport = (name: [UInt8], kind: Int64, signedAt: Int64, arrivedAt: Int64)

/// Stores `sig_ts` values that were ahead of the clock on arrival.
extension Subscriptions {
    private static let insertAhead = Mutation(
        SessionStorage.aheadTime,
        .insertOrIgnore([SessionStorage.name, SessionStorage.kind, SessionStorage.signedAt, SessionStorage.arrivedAt]))
    private static let removeLowest = Mutation(
        SessionStorage.aheadTime, .delete(where: [.equal(SessionStorage.name), .less(SessionStorage.signedAt)]))

    /// - Parameter row: the columns kind, `sig_ts` and arrival.
    static func aheadTime(_ row: Row) throws -> AheadTime {
        guard let kind = AheadTime.Kind(rawValue: try row.integer(0)) else { throw UnexpectedValue() }
        return AheadTime(kind, signedAt: try row.integer(1), arrivedAt: try row.integer(2))
    }

    /// Stores the new times of a name.
    static func noteAhead(_ used: AheadTimes, of name: [UInt8]) -> [Change] {
        used.added.map { insertion($0, of: name) } + (used.lowestKept.map { [removeLowest(.bytes(name), .integer($0))] } ?? [])
    }

    private static func insertion(_ time: AheadTime, of name: [UInt8]) -> Change {
        insertAhead(.bytes(name), .integer(time.kind.rawValue), .integer(time.signedAt), .integer(time.arrivedAt))
    }

    // MARK: Export and import

    private static let findAll = Query(
        SessionStorage.aheadTime, [SessionStorage.name, SessionStorage.kind, SessionStorage.signedAt, SessionStorage.arrivedAt],
        order: [.ascending(.id)])

    /// Reads all ahead times until `visit` returns false. Blocks, as the store's `scan` does.
    package static func forEachAheadTime(in store: any Store, _ visit: (AheadTimeExport) throws -> Bool) throws(StoreError) {
        try store.scan(findAll()) { row in
            try visit(
                (name: try row.bytes(0), kind: try row.integer(1), signedAt: try row.integer(2), arrivedAt: try row.integer(3)))
        }
    }

    /// Stores an ahead time unless it is stored already.
    ///
    /// - Returns: Whether it is stored now; false for an unknown kind.
    package static func merge(_ ahead: AheadTimeExport) -> StoreCommand<Bool> {
        guard let kind = AheadTime.Kind(rawValue: ahead.kind) else { return .done(false) }
        return .change([insertion(AheadTime(kind, signedAt: ahead.signedAt, arrivedAt: ahead.arrivedAt), of: ahead.name)], true)
    }
}
