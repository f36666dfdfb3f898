package import Storage
import WakuCrypto

/// An error of the server or of the connection to it.
package enum PostgreSQLError: Error {
    /// The connection was lost; the outcome of the last statements is unknown.
    ///
    /// - Parameter wasSilent: whether it was given up since the server did not answer in time.
    case connectionLost(wasSilent: Bool = false)
    /// - Parameter statement: the index of the failed statement; later statements were not executed.
    case refused(state: SQLState, statement: Int)

    package var state: SQLState? {
        if case .refused(let state, _) = self { state } else { nil }
    }
}

/// <https://www.postgresql.org/docs/15/errcodes-appendix.html>
package struct SQLState: Hashable, CustomStringConvertible {
    package let description: String

    private var category: Substring { description.prefix(2) }

    /// The transaction conflicted with another one and must be repeated: a serialization failure or a deadlock.
    package var isRepeatable: Bool { ["40001", "40P01"].contains(description) }

    /// Another transaction made a row with the same unique columns, or removed the row that this one refers to.
    var isConflict: Bool { ["23503", "23505"].contains(description) }

    /// Pages of the database are damaged, can't be read, or their file is missing.
    var isDamage: Bool { category == "XX" && description != "XX000" || ["58030", "58P01"].contains(description) }

    /// The statement itself is at fault (its data, a constraint, a limit of the server such as the size of an index entry, a table that is missing or
    /// forbidden): other statements may still succeed.
    var concernsStatement: Bool { ["21", "22", "23", "42", "54"].contains(category) || isDamage }

    /// Another session held a lock for longer than `lock_timeout`.
    var isLockTimeout: Bool { description == "55P03" }

    var isPermission: Bool { description == "42501" }

    /// The disk is full.
    var isFull: Bool { description == "53100" }

    /// Whether the session has ended. Assumed also for an unspecified failure.
    var endsSession: Bool {
        description.isEmpty || ["57P01", "57P02", "57P03", "57P05", "25P03"].contains(description) || category == "08"
    }
}

extension StoreError {
    /// The cause and the remedy. Never the server's own message, which may quote values to be stored.
    package init(explaining error: any Error, at address: PostgreSQLAddress) {
        switch error {
        case let error as StoreError: self = error
        case PostgreSQLError.connectionLost(wasSilent: true): self.init(silentAt: address)
        case PostgreSQLError.connectionLost:
            self.init(code: .unavailable, message: "the connection to PostgreSQL (\(address)) was lost: is the server running?")
        case PostgreSQLError.refused(let state, _): self.init(state, at: address)
        case is CryptoError, is UnexpectedValue:
            self.init(
                code: .damaged,
                message: """
                    a row of PostgreSQL (\(address)) can't be opened: it was altered; restore a backup, or let the client register again
                    """)
        default:
            self.init(code: .unavailable, message: "a change failed: \(type(of: error))")
        }
    }

    /// The cause and the remedy of a failed commit, with the host.
    init(explainingCommit error: any Error, on connection: PostgreSQLConnection) {
        guard case PostgreSQLError.connectionLost = error, !connection.isNewest || connection.wasSilent else {
            self.init(explaining: error, at: connection.address)
            return
        }
        if connection.isNewest { self.init(uncommittedAt: connection.address) } else { self.init(formerPrimaryAt: connection.address) }
    }

    /// - Parameter address: one whose ``PostgreSQLAddress/silenceLimit`` has passed.
    init(uncommittedAt address: PostgreSQLAddress) {
        self.init(
            code: .unavailable,
            message: "PostgreSQL (\(address)) has not committed within \(address.silenceLimit.components.seconds) s: "
                + "look at the server, its locks and its standby")
    }

    /// - Parameter state: the server's error, if it ended the statement itself.
    private init(silentAt address: PostgreSQLAddress, _ state: SQLState? = nil) {
        let state = state.map { " (SQLSTATE \($0))" } ?? ""
        self.init(
            code: .unavailable,
            message: "PostgreSQL (\(address)) did not answer in time: look at the server, its locks and its standby\(state)")
    }

    init(formerPrimaryAt address: PostgreSQLAddress) {
        self.init(
            code: .unavailable, message: "PostgreSQL (\(address)) is a former primary, whose place another one has taken: end it")
    }

    package init(unreplicatedAt address: PostgreSQLAddress) {
        self.init(
            code: .unavailable,
            message: "PostgreSQL (\(address)) did not wait for its standby: let it, or change synchronous_standby_names")
    }

    init(newerAt address: PostgreSQLAddress) {
        self.init(code: .newer, message: "PostgreSQL (\(address)) has tables of a newer waku-push: run that version")
    }

    init(otherIdentityAt address: PostgreSQLAddress) {
        self.init(
            code: .otherIdentity,
            message: "PostgreSQL (\(address)) has the data of another identity: use that one's key file, or another database")
    }

    init(forbiddenAt address: PostgreSQLAddress) {
        self.init(
            code: .permission,
            message:
                "this role may not use or create tables in PostgreSQL (\(address)): make it the owner of the database or schema, and of the "
                + "tables (REASSIGN OWNED)")
    }

    private init(_ state: SQLState, at address: PostgreSQLAddress) {
        switch state.description {
        case _ where state.isDamage:
            self.init(code: .damaged, message: "PostgreSQL (\(address)) has damaged data: restore a backup (SQLSTATE \(state))")
        case _ where state.isPermission:
            self.init(forbiddenAt: address)
        case "25006":
            self.init(code: .unavailable, message: "PostgreSQL (\(address)) is read-only: is it a standby? Give the primary")
        case "57014":
            self.init(silentAt: address, state)
        case _ where state.isLockTimeout:
            self.init(
                code: .unavailable,
                message: "another session holds a lock in PostgreSQL (\(address)), as VACUUM FULL and ALTER TABLE do: "
                    + "try again after its end")
        case "3F000":
            self.init(code: .missing, message: "the schema of PostgreSQL (\(address)) does not exist: create it, or correct search_path")
        case "42P01":
            self.init(
                code: .unavailable,
                message: "a table of waku-push is missing in PostgreSQL (\(address)): look at search_path, or restore a backup "
                    + "(SQLSTATE \(state))")
        case "42P07":
            let message = "PostgreSQL (\(address)) has a table, view or index with a name that waku-push uses: give it a schema of its own"
            self.init(code: .damaged, message: message)
        case _ where state.isFull:
            self.init(code: .full, message: "PostgreSQL (\(address)) is out of disk space: free some")
        case _ where state.endsSession:
            self.init(code: .unavailable, message: "PostgreSQL (\(address)) ended the connection: is it restarting? (SQLSTATE \(state))")
        default:
            self.init(code: .unavailable, message: "PostgreSQL (\(address)) failed with SQLSTATE \(state): see the server's log")
        }
    }
}
