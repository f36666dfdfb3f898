import CPostgres
import Foundation

/// A notification sent by `NOTIFY`.
package struct PostgreSQLNotification: Hashable, Sendable {
    package let channel: String
    package let payload: String
}

extension PostgreSQLConnection {
    /// Waits for notifications of the channels that this session listens to. There must be no open transaction.
    ///
    /// - Parameters:
    ///   - deadline: the end of the wait.
    ///   - interruption: a file descriptor that also ends the wait when it becomes readable.
    /// - Returns: the notifications received, in order; may be empty.
    /// - Throws: ``PostgreSQLError/connectionLost``, also once this server is known to be a former primary
    package func notifications(
        until deadline: ContinuousClock.Instant, orReadable interruption: Int32
    ) throws(PostgreSQLError) -> [PostgreSQLNotification] {
        while true {
            let received = receivedNotifications()
            guard received.isEmpty else { return received }
            guard !isLost else { throw .connectionLost() }
            var descriptors = [library.table.pointee.PQsocket(connection), interruption].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            guard descriptors[0].fd >= 0 else { throw lost() }
            let count = poll(&descriptors, 2, Self.pollTimeout(min(deadline - .now, Self.lookout)))
            if descriptors[1].revents != 0 || count == 0 && .now >= deadline { return [] }
            guard count >= 0 || errno == EINTR else { throw lost() }
            guard count <= 0 || library.table.pointee.PQconsumeInput(connection) == 1 else { throw lost() }
        }
    }

    private func receivedNotifications() -> [PostgreSQLNotification] {
        var received: [PostgreSQLNotification] = []
        while let next = library.table.pointee.PQnotifies(connection) {
            defer { library.table.pointee.PQfreemem(next) }
            guard let channel = next.pointee.relname, let payload = next.pointee.extra else { continue }
            received.append(PostgreSQLNotification(channel: String(cString: channel), payload: String(cString: payload)))
        }
        return received
    }
}
