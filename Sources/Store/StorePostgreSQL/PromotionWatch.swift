import Dispatch
import Storage

/// Looks every ten seconds whether another host of the address was promoted. A connection that works would not show it: a former primary that was
/// suspended, or cut off for a while, goes on answering.
final class PromotionWatch: Sendable {
    private static let period = DispatchTimeInterval.seconds(10)

    private let address: PostgreSQLAddress
    /// Of the cluster that the hosts belong to.
    private let systemIdentifier: UInt64
    private let queue = DispatchQueue(label: "waku-push.promotion", qos: .utility)

    /// Returns nil if the address has only one host, or if the role may not read which cluster this is.
    ///
    /// - Parameter connection: a connection to the server in use.
    init?(_ address: PostgreSQLAddress, _ connection: PostgreSQLConnection) {
        guard (try? Self.hosts(of: address))?.count ?? 0 > 1, let identifier = connection.systemIdentifier else { return nil }
        (self.address, systemIdentifier) = (address, identifier)
        lookAgain()
    }

    private func lookAgain() {
        queue.asyncAfter(deadline: .now() + Self.period) { [weak self] in
            self?.look()
            self?.lookAgain()
        }
    }

    private static func hosts(of address: PostgreSQLAddress) throws(StoreError) -> [PostgreSQLHost] {
        try PostgreSQLHost.list(PostgreSQLAddress.library().completed(PostgreSQLConnection.parameters(of: address)))
    }

    /// Looks once. If a host has a higher timeline than the one in use, all connections of this process are lost, and made again to that host.
    func look() {
        let known = KnownPrimary.of(address.connectionString)
        let hosts = (try? Self.hosts(of: address)) ?? []
        for named in hosts where known.host.map({ !named.includes($0) }) ?? false {
            for host in (try? named.resolved(in: address)) ?? [] {
                // Standbys refuse.
                guard let found = try? PostgreSQLConnection.configured(address, at: host, name: "waku-push watch"),
                    found.systemIdentifier == systemIdentifier, found.timeline > known.timeline(of: systemIdentifier)
                else { continue }
                known.note(host, found)
            }
        }
    }
}
