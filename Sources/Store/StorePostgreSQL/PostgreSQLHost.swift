import Foundation
import Storage

/// A host of an address: a server, or one of several that take each other's place. Empty texts stand for libpq's defaults.
struct PostgreSQLHost: Hashable, Sendable, CustomStringConvertible {
    /// The time limit for connecting to the only host of an address.
    static let onlyHostLimit = Duration.seconds(12)
    /// The time limit for connecting to one of several hosts, which is given up early enough to try the others.
    private static let oneOfSeveralLimit = Duration.seconds(3)

    /// `host`: a host name, an IP address, or the folder of a Unix socket.
    var name = ""
    /// `hostaddr`: an IP address; empty if `name` is yet to be resolved.
    var address = ""
    var port = ""

    var description: String {
        let place = name.isEmpty ? address : name
        return place.isEmpty || port.isEmpty || port == "5432" ? place : "\(place):\(port)"
    }

    /// The hosts of a connection's parameters, in their order.
    ///
    /// <https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS>
    ///
    /// - Throws: `StoreError` with `invalid` if the lists of hosts, addresses and ports differ in length.
    static func list(_ parameters: [String: String]) throws(StoreError) -> [PostgreSQLHost] {
        func list(_ name: String) -> [String] {
            guard let text = parameters[name], !text.isEmpty else { return [] }
            return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
        let count = max(1, names.count, addresses.count)
        guard [0, count].contains(names.count), [0, count].contains(addresses.count), [0, 1, count].contains(ports.count) else {
            throw StoreError(
                code: .invalid, message: "the store's address must have as many values in hostaddr= and port= as in host=, or one port")
        }
        return (0..<count).map { index in
            PostgreSQLHost(
                name: names.isEmpty ? "" : names[index], address: addresses.isEmpty ? "" : addresses[index],
                port: ports.count > 1 ? ports[index] : ports.first ?? "")
        }
    }

    /// The time limit for connecting.
    ///
    /// - Parameters:
    ///   - setting: `connect_timeout`. As with libpq, zero and negative numbers set no limit of the operator's.
    ///   - isOnly: whether there is no other host or IP address to try.
    static func connectLimit(_ setting: String?, isOnly: Bool) -> Duration {
        if let seconds = setting.flatMap(Int32.init), seconds > 0 { return .seconds(seconds) }
        return isOnly ? onlyHostLimit : oneOfSeveralLimit
    }

    /// Whether `other`, which may be resolved, is this host.
    func includes(_ other: PostgreSQLHost) -> Bool {
        name == other.name && port == other.port && (address.isEmpty || address == other.address)
    }

    /// The host with each of its IP addresses.
    ///
    /// - Throws: `StoreError` with `unavailable`
    func resolved(in database: PostgreSQLAddress) throws(StoreError) -> [PostgreSQLHost] {
        guard !name.isEmpty, address.isEmpty, !name.hasPrefix("/"), !name.hasPrefix("@") else { return [self] }
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(name, nil, &hints, &found)
        guard status == 0 else {
            let reason = String(cString: gai_strerror(status))
            throw StoreError(
                code: .unavailable,
                message: "PostgreSQL (\(database.at(self))) can't be reached: the host name can't be resolved: \(reason)")
        }
        defer { freeaddrinfo(found) }
        var (hosts, next) = ([PostgreSQLHost](), found)
        while let entry = next?.pointee {
            next = entry.ai_next
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            guard getnameinfo(entry.ai_addr, entry.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 else { continue }
            var host = self
            host.address = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
            if !hosts.contains(host) { hosts.append(host) }
        }
        return hosts
    }
}

extension [PostgreSQLHost] {
    /// Whether there is no other host or IP address to try.
    ///
    /// - Parameter places: one of the hosts, resolved.
    func isOnly(resolvedTo places: [PostgreSQLHost]) -> Bool { count == 1 && places.count == 1 }

    /// With the host that was used last as the first one.
    func beginning(with last: PostgreSQLHost?) -> [PostgreSQLHost] {
        guard let last else { return self }
        return filter { $0.includes(last) } + filter { !$0.includes(last) }
    }
}

extension StoreError {
    /// - Parameter failures: those of the hosts that were tried, in their order; not empty.
    init(ofHosts failures: [StoreError]) {
        var messages: [String] = []
        for failure in failures where !messages.contains(failure.message) { messages.append(failure.message) }
        // A host that must be set up otherwise does not become usable by itself.
        self.init(
            code: failures.first { $0.code != .unavailable }?.code ?? .unavailable, message: messages.joined(separator: "; "))
    }
}
