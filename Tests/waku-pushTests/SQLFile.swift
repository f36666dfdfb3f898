import GRDB

/// A database, to be changed behind the program's back.
struct SQLFile {
    let path: String

    func execute(_ sql: String) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }
}
