package import Storage

/// Tests whether the server commits at present, and in time, by a commit that changes nothing.
package enum CommitTest {
    /// How many commits are timed.
    private static let rounds = 3

    /// Writes records that nothing reads to the write-ahead log, and waits for their commits: with synchronous replication, until the standby has them
    /// too. Blocks.
    ///
    /// - Parameters:
    ///   - address: the database to test.
    ///   - limit: the maximum time until the server's answer, without the time to connect.
    /// - Returns: the duration of the fastest commit: a round trip, and the server's write.
    /// - Throws: `StoreError`
    @discardableResult
    package static func run(at address: PostgreSQLAddress, within limit: Duration) throws(StoreError) -> Duration {
        var address = address
        address.silenceLimit = limit
        let connection = try PostgreSQLConnection.open(address, name: "waku-push commit test")
        var fastest = limit
        for _ in 0..<rounds { fastest = min(fastest, try commit(on: connection, at: address)) }
        return fastest
    }

    private static func commit(on connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws(StoreError) -> Duration {
        let warningCount: Int
        let start: ContinuousClock.Instant
        do {
            let write = ["BEGIN", "SELECT pg_logical_emit_message(true, 'waku-push', '')"]
            _ = try connection.run(write.map { Statement($0, isPrepared: false) })
            // Only the commit's own warnings concern the standby.
            warningCount = connection.warningCount
            start = .now
            _ = try connection.run(Statement("COMMIT"))
        } catch .connectionLost {
            end(connection.backendID, at: address)
            throw StoreError(uncommittedAt: address)
        } catch {
            throw StoreError(explaining: error, at: address)
        }
        guard connection.warningCount == warningCount else { throw StoreError(unreplicatedAt: address) }
        return start.duration(to: .now)
    }

    /// Tests whether a node could open the database now, or others exclude it. Blocks.
    ///
    /// - Parameter isShared: whether it would be one of several nodes.
    /// - Throws: `StoreError`, with `locked` if others exclude it.
    package static func lock(at address: PostgreSQLAddress, isShared: Bool) throws(StoreError) {
        let connection = try PostgreSQLConnection.open(address, name: "waku-push lock test")
        do {
            try Writer.checkLock(connection, at: address, isShared: isShared)
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    /// Tests whether a node could create its tables now, in a transaction that is rolled back. Blocks.
    ///
    /// - Throws: `StoreError`
    package static func creation(at address: PostgreSQLAddress) throws(StoreError) {
        let connection = try PostgreSQLConnection.open(address, name: "waku-push creation test")
        defer { connection.rollBack() }
        do {
            _ = try connection.run(["BEGIN", "CREATE TABLE store_migration ()"].map { Statement($0, isPrepared: false) })
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    /// The server does not notice that nobody waits any more: the session would stay for as long as the standby is away.
    private static func end(_ backendID: Int32, at address: PostgreSQLAddress) {
        let end = Statement("SELECT pg_terminate_backend(\(backendID))", isPrepared: false)
        _ = try? PostgreSQLConnection.open(address, name: "waku-push commit test").run(end)
    }
}
