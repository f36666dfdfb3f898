import Foundation
import GRDB
import Storage
import Synchronization

extension SQLiteStore {
    /// While a file of the database is lost, commits and reads are refused. The rows of a lost database file are copied beside its name, while its open file has them.
    ///
    /// - Returns: the failure; nil while all files are in place, also after a moved one came back.
    @discardableResult
    func checkFiles() -> StoreError? {
        loss.withLock { loss in
            guard let suffix = files.lost else {
                // A reader that was opened meanwhile has another file.
                if queue.refusal != nil { pool.invalidateReadOnlyConnections() }
                if loss?.suffix == "" { unlink(DatabaseFile.rescued(path)) }
                loss = nil
                queue.refuse(nil)
                return nil
            }
            if let loss, loss.suffix == suffix {
                // A read may have kept the first attempt from it.
                emptyLogOfLostFile()
                return loss.error
            }
            let cause = "\(path)\(suffix) was deleted, moved or replaced under the daemon, which does not use it any more"
            // Before the copy, which has all acknowledged changes then.
            queue.refuse(StoreError(code: .unavailable, message: "\(cause): its rows are being copied"))
            let error = suffix.isEmpty ? rescue(cause) : StoreError(code: .unavailable, message: "\(cause): restart it; no row is lost")
            emptyLogOfLostFile()
            // A copy that failed is tried again.
            if error.code != .cannotCreate { loss = (suffix, error) }
            queue.refuse(error)
            return error
        }
    }

    /// Else the next program would apply the log to another database of this name, and a killed process leave a part of the changes in it.
    private func emptyLogOfLostFile() {
        try? pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    }

    /// A further connection for reads would open another file of this name.
    func requireFiles() throws(StoreError) {
        if let refusal = queue.refusal { throw refusal }
    }

    /// - Returns: with `cannotCreate` if the copy failed.
    private func rescue(_ cause: String) -> StoreError {
        do throws(StoreError) {
            let copy = try copyRows()
            return StoreError(
                code: .unavailable,
                message: "\(cause): move it back, or stop the daemon and restore the copy of its rows: waku-push admin restore \(copy)")
        } catch {
            return StoreError(
                code: .cannotCreate,
                message: "\(cause), and its rows can't be copied (\(error.message)): move it back, or mend that, before you stop the "
                    + "daemon; its rows are lost otherwise")
        }
    }

    /// Without `UnfinishedFile`, which takes the daemon's signals. `admin restore` inspects the copy.
    ///
    /// - Returns: the name of the copy.
    private func copyRows() throws(StoreError) -> String {
        let copy = DatabaseFile.rescued(path)
        let partial = copy + ".partial"
        unlink(partial)
        let file = DataFolder.openFile(partial, O_WRONLY | O_EXCL)
        guard file >= 0 else { throw StoreError(code: .cannotCreate, message: "\(partial) \(DiskSpace.creationFailure(errno))") }
        Foundation.close(file)
        do {
            try pool.writeWithoutTransaction { try $0.execute(sql: "VACUUM INTO ?", arguments: [partial]) }
            try StoreBackup.sync(partial)
        } catch {
            unlink(partial)
            throw StoreError(explaining: error, in: partial)
        }
        // Nobody may have restored an earlier one.
        rename(copy, copy + ".earlier")
        rename(partial, copy)
        UnfinishedFile.syncFolder(of: copy)
        return copy
    }
}
