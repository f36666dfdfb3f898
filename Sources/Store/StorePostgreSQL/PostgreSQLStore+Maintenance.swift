package import Storage

extension PostgreSQLStore {
    /// Why the database can't be written or read at present; nil when it can.
    package var failure: String? { monitor.failure }
    package var outage: String? { monitor.outage }

    /// Checks whether the server answers, reconnecting if necessary, whether it has space after it had none, and whether all tables can be used.
    package func maintain() async {
        do {
            try await queue.run { try $0.probe() }
            if monitor.wantsSpaceTest {
                let start = ContinuousClock.now
                if try await queue.run({ try $0.hasSpace() }) { monitor.foundSpace(since: start) }
            }
            let _: Bool = try await onReader { _ throws(StoreError) in
                do {
                    try self.checkTables()
                    try self.measure()
                } catch {
                    throw self.monitor.readFailed(error)
                }
                return true
            }
            monitor.reached(nil)
        } catch {
            monitor.reached(StoreError(explaining: error, at: address))
        }
    }

    package func recheck() async {
        // Without its server nothing is known of the rows.
        if monitor.wantsCheck, monitor.outage == nil { await check() }
    }

    /// A role may lose its rights on one table only: commits that don't need it succeed.
    private func checkTables() throws {
        let names = (["store_writer", Properties.table.name] + schema.parts.tables.map(\.name)).map { "'\($0)'" }.joined(separator: ", ")
        let rights = ["SELECT", "INSERT", "UPDATE", "DELETE"].map { "has_table_privilege(c.oid, '\($0)')" }.joined(separator: " AND ")
        let find = Statement(
            """
            SELECT name, quote_ident(current_schema()) FROM unnest(ARRAY[\(names)]) name LEFT JOIN pg_class c \
            ON c.relname = name AND c.relnamespace = quote_ident(current_schema())::regnamespace \
            WHERE NOT coalesce(\(rights), false) ORDER BY 1 LIMIT 1
            """)
        let missing = try pool.read { connection -> StoreError? in
            guard let row = try connection.run(find).rows.first else { return nil }
            if let refusal = try SchemaChoice.refusal(connection, at: address) {
                // A role's changed search_path applies to new sessions.
                _ = connection.lost()
                return refusal
            }
            return StoreError(
                code: .permission,
                message: "table \(try row.text(0)) of PostgreSQL (\(address)) is missing in schema \(try row.text(1)), or this role may "
                    + "not use it: make it the table's owner, or restore a backup")
        }
        if let missing { throw missing }
    }

    package func stopWaiting() {
        queue.stopWaiting()
    }

    /// Checks whether every sealed row can be opened. Takes minutes for a large database; ends early when the task is cancelled.
    package func check() async {
        let cancellation = Cancellation()
        let result: Result<Bool, StoreError> = await withTaskCancellationHandler {
            do throws(StoreError) {
                return .success(
                    try await onReader { _ throws(StoreError) in
                        try self.inspect(limit: nil) { isReadable in isReadable && !cancellation.isRequested }.unreadableCount == 0
                    })
            } catch {
                return .failure(error)
            }
        } onCancel: {
            cancellation.request()
        }
        guard !cancellation.isRequested else { return }
        switch result {
        case .success(let isWhole): monitor.checked(isWhole ? nil : UnexpectedValue())
        // The next check may find the server.
        case .failure(let error) where error.code == .unavailable: break
        case .failure(let error): monitor.checked(error)
        }
    }

    /// Compares the tables with their declarations, and reads the sealed rows. Blocks as `readEach` does.
    ///
    /// - Parameters:
    ///   - isUnsealing: false when the store was opened without its key: rows are not opened.
    ///   - limit: the most rows to read per table; nil: all.
    ///   - shouldContinue: called after each row, with whether it could be opened; false ends the inspection.
    /// - Throws: `StoreError`, with `unsuitable` for tables that are not as declared.
    package func inspect(
        isUnsealing: Bool = true, limit: Int?, while shouldContinue: (_ isReadable: Bool) -> Bool = { _ in true }
    ) throws(StoreError) -> StoreInspection {
        do {
            try pool.read { try SchemaCheck(schema).verify($0, at: address) }
        } catch {
            throw StoreError(explaining: error, at: address)
        }
        var inspection = StoreInspection()
        inspection.isRotationUnfinished = try read(Properties.property(Sealer.unfinishedRotationProperty)) != nil
        guard isUnsealing else { return inspection }
        var (found, isEnded) = ([String: StoreInspection.Rows](), false)
        for sealed in schema.parts.sealedRows where !isEnded {
            var rows = found[sealed.label] ?? StoreInspection.Rows()
            try scan(sealed.contents()(limit: limit)) { row in
                do {
                    _ = try sealed.open(row, by: sealer)
                    rows.add(nil)
                    isEnded = !shouldContinue(true)
                } catch {
                    rows.add(error)
                    isEnded = !shouldContinue(false)
                }
                return !isEnded
            }
            found[sealed.label] = rows
        }
        inspection.rows = found
        return inspection
    }
}
