import Foundation

/// Rows of 700 bytes appended to a file, with a sync for each group: the least that durable rows cost. For one thread.
final class BareLog {
    private static let rowByteCount = 700
    private let file: Int32

    /// - Throws: ``BenchError``
    init(path: String) throws(BenchError) {
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .disk }
    }

    deinit { close(file) }

    func append(rowCount: Int) throws(BenchError) {
        let rows = [UInt8](repeating: 7, count: rowCount * Self.rowByteCount)
        guard write(file, rows, rows.count) == rows.count, fdatasync(file) == 0 else { throw .disk }
    }
}
