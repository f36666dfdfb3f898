package import SessionProtocol
import Synchronization
import WakuCrypto

/// One or many storage servers that store nothing: they accept monitoring requests, verified as by real servers, and report the messages passed
/// to ``report(_:)``.
package final class StorageServerStandIn: Sendable {
    /// Numbers of requests.
    package struct Figures: Hashable, Sendable {
        package var connections = 0
        package var requests = 0
        /// Accepted entries, renewals included.
        package var accepted = 0
        package var refused = 0
        package var accounts = 0
    }

    private struct State {
        var peers: Set<OxenMQServer.Peer> = []
        var monitors: [AccountID: Set<OxenMQServer.Peer>] = [:]
        var figures = Figures()
    }

    private final class Monitors: Sendable {
        let state = Mutex(State())
    }

    private let server: OxenMQServer
    private let monitors: Monitors
    private let swarms: [UInt64]

    /// - Parameters:
    ///   - verifies: Whether signatures are verified; false in benchmarks of the client side.
    ///   - swarms: A swarm id for each server to run. Each server has its own address and key.
    /// - Throws: `OxenMQServer.Failure`
    package init(sodium: Sodium, verifies: Bool = true, swarms: [UInt64]) async throws {
        let monitors = Monitors()
        let verifier = MonitorRequestVerifier(sodium: verifies ? sodium : nil)
        self.monitors = monitors
        self.swarms = swarms
        server = try await OxenMQServer(sodium: sodium, ports: swarms.map { _ in 0 }) { peer, parts in
            monitors.state.withLock { Self.answer(parts, of: peer, verifier, &$0) }
        }
    }

    /// Runs servers that verify no signatures until the body returns or throws.
    ///
    /// - Parameter swarms: a swarm id for each server to run.
    /// - Throws: `OxenMQServer.Failure`, and errors of `body`.
    package static func running<R: Sendable>(
        sodium: Sodium, swarms: [UInt64], _ body: (StorageServerStandIn) async throws -> R
    ) async throws -> R {
        let servers = try await StorageServerStandIn(sodium: sodium, verifies: false, swarms: swarms)
        do {
            let result = try await body(servers)
            await servers.shutDown()
            return result
        } catch {
            await servers.shutDown()
            throw error
        }
    }

    /// The servers' entries in the map.
    package var descriptions: [StorageServer] {
        zip(server.listeners, swarms).map { StorageServer(publicKey: $0.publicKey, ip: "127.0.0.1", port: $0.port, swarm: $1) }
    }

    /// The text of a nodes file.
    package static func nodesFile(_ servers: [StorageServer]) -> String {
        let entries = servers.map { server in
            let swarm = digits(of: server.swarm)
            return
                #"{"pubkey_x25519":"\#(hexString(server.publicKey))","ip":"\#(server.ip)","port":\#(server.port),"swarm_id":"\#(swarm)"}"#
        }
        return "[\(entries.joined(separator: ",\n"))]\n"
    }

    /// 16 hexadecimal digits.
    private static func digits(of swarm: UInt64) -> String { hexString(withUnsafeBytes(of: swarm.bigEndian, Array.init)) }

    package var figures: Figures {
        monitors.state.withLock { state in
            var figures = state.figures
            (figures.connections, figures.accounts) = (state.peers.count, state.monitors.count)
            return figures
        }
    }

    package func isMonitored(_ account: AccountID) -> Bool { monitors.state.withLock { $0.monitors[account] != nil } }

    /// An encoded report of a message.
    package struct Report: Sendable {
        let account: AccountID
        let parts: [[UInt8]]

        package init(_ message: NotifyMessage) {
            account = message.account
            parts = [Array("notify.message".utf8), message.encoded()]
        }
    }

    /// Reports a message on every connection that monitors its account.
    ///
    /// - Returns: The number of these connections.
    @discardableResult
    package func report(_ message: NotifyMessage) -> Int { send(Report(message)) }

    /// As above, for an encoded message.
    @discardableResult
    package func send(_ report: Report) -> Int {
        let peers = monitors.state.withLock { $0.monitors[report.account] ?? [] }
        for peer in peers { server.send(report.parts, to: peer) }
        return peers.count
    }

    /// Moves accounts to a swarm. Servers of other swarms end their monitoring and name the new swarm, as current storage servers do.
    ///
    /// - Returns: The number of notices sent.
    @discardableResult
    package func move(_ accounts: [AccountID], to swarm: UInt64) -> Int {
        let servers = descriptions.filter { $0.swarm == swarm }
        let snodes = BencodeValue.list(
            servers.map { server in
                let key = BencodeValue.text(hexString(server.publicKey))
                return .dictionary([
                    "ip": .text(server.ip), "port_https": .integer(22021), "port_omq": .integer(Int64(server.port)), "pubkey_ed25519": key,
                    "pubkey_legacy": key, "pubkey_x25519": key,
                ])
            })
        var count = 0
        for account in accounts {
            let peers = monitors.state.withLock { state in
                let peers = (state.monitors[account] ?? []).filter { swarms[$0.listener] != swarm }
                state.monitors[account]?.subtract(peers)
                return peers
            }
            guard !peers.isEmpty else { continue }
            let notice = BencodeValue.dictionary([
                "@": .bytes(account.bytes), "errcode": .integer(MonitorRefusal.wrongSwarm.code), "error": .text("left this swarm"),
                "snodes": snodes, "swarm": .text(Self.digits(of: swarm)),
            ]).encoded()
            for peer in peers { server.send([Array(MonitorEnded.command.utf8), notice], to: peer) }
            count += peers.count
        }
        return count
    }

    /// The number of connections that monitor accounts at servers of a swarm.
    package func monitorCount(in swarm: UInt64) -> Int {
        monitors.state.withLock { $0.monitors.values.reduce(0) { $0 + $1.count { swarms[$0.listener] == swarm } } }
    }

    /// Sends a command to all clients.
    package func send(command: String, _ part: [UInt8]) {
        for peer in monitors.state.withLock(\.peers) { server.send([Array(command.utf8), part], to: peer) }
    }

    /// Forgets all connections and their requests. For clients that were killed, and so did not send BYE.
    package func forgetConnections() {
        monitors.state.withLock { state in
            state.peers = []
            state.monitors = [:]
        }
    }

    /// Ends all connections.
    package func shutDown() async {
        await server.shutDown()
    }

    private static func answer(
        _ parts: [[UInt8]], of peer: OxenMQServer.Peer, _ verifier: MonitorRequestVerifier, _ state: inout State
    ) -> [[[UInt8]]] {
        guard let command = parts.first else { return [] }
        switch String(decoding: command, as: UTF8.self) {
        case "HI":
            state.peers.insert(peer)
            return [[Array("HELLO".utf8)]]
        case "BYE":
            state.peers.remove(peer)
            for account in state.monitors.keys { state.monitors[account]?.remove(peer) }
            state.monitors = state.monitors.filter { !$0.value.isEmpty }
            return []
        case MonitorEntry.command where parts.count == 3 && state.peers.contains(peer):
            state.figures.requests += 1
            let (reply, accounts, refused) = verifier.answer(parts[2])
            for account in accounts { state.monitors[account, default: []].insert(peer) }
            state.figures.accepted += accounts.count
            state.figures.refused += refused
            return [[Array("REPLY".utf8), parts[1], reply]]
        default:
            return [[Array("UNKNOWNCOMMAND".utf8), Array("REPLY".utf8)] + parts.dropFirst().prefix(1)]
        }
    }
}

extension NotifyMessage {
    /// A message of namespace 0 that does not expire.
    package static func sample(
        of account: AccountID, hash: String = String(repeating: "h", count: 43), data: [UInt8]? = nil
    ) -> NotifyMessage {
        NotifyMessage(account: account, hash: hash, namespace: 0, storedAt: 1, expiresAt: .max, data: data)
    }
}
