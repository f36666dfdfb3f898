import Foundation
package import Storage
import StorePostgreSQL
import Synchronization

/// Receives notifications of other nodes' transactions (``Notice``) on a separate connection. Stored changes that are notified while there is no
/// connection must be found by reading.
///
/// The caller's thread waits in ``next(timeout:)``; any thread may call ``close()``.
package final class ClusterListener: Sendable {
    package enum Event: Hashable, Sendable {
        /// The listener has a new connection. Notifications of earlier commits may have been missed; a read from now on sees these commits.
        case reconnected
        /// Payloads by channel, in the order of their commits; empty after the timeout.
        case notified([String: [String]])
        case closed
    }

    /// Shown in `pg_stat_activity`.
    static let sessionName = "waku-push listener"

    private struct Session {
        let connection: PostgreSQLConnection
        /// The channels by their names in the database.
        let channels: [String: String]
    }

    private let address: PostgreSQLAddress
    private let channels: [String]
    private let primary: PrimaryGuard
    /// The ends of a pipe with which ``close()`` interrupts the wait.
    private let reading: FileHandle
    private let writing: FileHandle
    private let isClosed = Atomic(false)
    private let session = Mutex<Session?>(nil)

    init(_ address: PostgreSQLAddress, channels: [String], _ primary: PrimaryGuard) {
        self.address = address
        self.channels = channels
        self.primary = primary
        let pipe = Pipe()
        (reading, writing) = (pipe.fileHandleForReading, pipe.fileHandleForWriting)
    }

    /// Waits for the next event; connects first if there is no connection.
    ///
    /// - Throws: `StoreError` if it can't connect; call again after a pause.
    package func next(timeout: Duration) throws(StoreError) -> Event {
        do {
            return try session.withLock { session in
                let deadline = ContinuousClock.now + timeout
                while !isClosed.load(ordering: .sequentiallyConsistent) {
                    guard let current = session, !current.connection.isLost else {
                        session = try listen()
                        return .reconnected
                    }
                    do {
                        let received = try current.connection.notifications(until: deadline, orReadable: reading.fileDescriptor)
                        if received.isEmpty && ContinuousClock.now < deadline { continue }
                        return .notified(payloads(received, in: current))
                    } catch {
                        session = nil
                    }
                }
                session = nil
                return .closed
            }
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    /// Ends the wait at once, except that an attempt to connect is completed first. From now on ``next(timeout:)`` returns only ``Event/closed``.
    package func close() {
        guard !isClosed.exchange(true, ordering: .sequentiallyConsistent) else { return }
        try? writing.write(contentsOf: [0])
    }

    private func payloads(_ received: [PostgreSQLNotification], in session: Session) -> [String: [String]] {
        received.reduce(into: [:]) { payloads, notification in
            guard let channel = session.channels[notification.channel] else { return }
            payloads[channel, default: []].append(notification.payload)
        }
    }

    private func listen() throws -> Session {
        let connection = try PostgreSQLConnection.open(address, name: Self.sessionName, accept: primary.accept)
        let schema = Statement("SELECT \(ClusterDatabase.schemaID)::bigint", isPrepared: false)
        guard let id = try connection.run(schema).rows.first else { throw UnexpectedValue() }
        let suffix = "_\(try id.integer(0))"
        _ = try connection.run(channels.map { Statement("LISTEN \"\($0 + suffix)\"", isPrepared: false) })
        return Session(
            connection: connection, channels: Dictionary(channels.map { ($0 + suffix, $0) }, uniquingKeysWith: { first, _ in first }))
    }
}
