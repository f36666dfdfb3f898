package import Storage

extension PostgreSQLStore {
    /// Why the database can't be written or read at present; nil when it can.
    package var failure: String? { monitor.failure }

    /// Checks whether the server answers, reconnecting if necessary, and reads again rows that could not be read.
    package func maintain() async {
        do {
            try await queue.run { try $0.probe() }
            monitor.reached(nil)
        } catch {
            monitor.reached(StoreError(explaining: error, at: address))
            return
        }
        let _: StoreInspection.Rows? = try? await onReader { _ throws(StoreError) in
            do { try self.measure() } catch { throw self.monitor.readFailed(error) }
            return nil
        }
        if monitor.wantsCheck { await check() }
    }

    package func stopWaiting() {
        queue.stopWaiting()
    }

    /// Checks whether every sealed row can be opened. Takes minutes for a large database.
    package func check() async {
        do {
            let inspection = try await onReader { store throws(StoreError) in try self.inspect(limit: nil) }
            monitor.checked(inspection.unreadableCount == 0 ? nil : UnexpectedValue())
        } catch {
            monitor.checked(error)
        }
    }

    /// Compares the tables with their declarations, and reads the sealed rows. Blocks as `readEach` does.
    ///
    /// - Parameters:
    ///   - isUnsealing: false when the store was opened without its key: rows are not opened.
    ///   - limit: the most rows to read per table; nil: all.
    /// - Throws: `StoreError`, with `unsuitable` for tables that are not as declared.
    package func inspect(isUnsealing: Bool = true, limit: Int?) throws(StoreError) -> StoreInspection {
        do {
            try pool.read { try SchemaCheck(schema).verify($0, at: address) }
        } catch {
            throw StoreError(explaining: error, at: address)
        }
        var inspection = StoreInspection()
        inspection.isRotationUnfinished = try read(Properties.property(Sealer.unfinishedRotationProperty)) != nil
        guard isUnsealing else { return inspection }
        var found: [String: StoreInspection.Rows] = [:]
        for sealed in schema.parts.sealedRows {
            var rows = found[sealed.label] ?? StoreInspection.Rows()
            try scan(sealed.contents()(limit: limit)) { row in
                do {
                    _ = try sealed.open(row, by: sealer)
                    rows.add(nil)
                } catch {
                    rows.add(error)
                }
                return true
            }
            found[sealed.label] = rows
        }
        inspection.rows = found
        return inspection
    }
}
