import Core
import Foundation
import PushNode
import SessionProtocol
import SessionStandIns
import TestSupport
import WakuCrypto

/// The faults of the storage servers and of the network to them.
struct SwarmFault {
    /// Connections that are refused.
    var refusal = 0.0
    /// Requests and reports that are lost.
    var loss = 0.0
    var repetition = 0.0
    /// The maximum, in seconds: it also reorders the reports of different servers.
    var delay = 0.1
}

/// The storage servers and their directory.
///
/// Everything runs on one thread, so its state needs no lock.
final class SimulatedSwarms: @unchecked Sendable {
    private let world: World
    private let verifier: MonitorRequestVerifier
    /// A file of the map, which the node reads again when it is told.
    let path: String
    private(set) var servers: [StorageServer] = []
    var fault = SwarmFault()

    init(_ world: World, sodium: Sodium) {
        self.world = world
        verifier = MonitorRequestVerifier(sodium: sodium)
        path = "\(world.folder)/nodes.json"
        servers = (0..<Int.random(in: 2...4, using: &world.generator)).flatMap { _ in makeSwarm() }
    }

    private func makeSwarm() -> [StorageServer] {
        let swarm = world.generator.next() >> 1
        return (0..<Int.random(in: 1...3, using: &world.generator)).map { _ in
            let port = UInt16.random(in: 1_000...60_000, using: &world.generator)
            return StorageServer(publicKey: world.generator.bytes(32), ip: "10.0.0.1", port: port, swarm: swarm)
        }
    }

    func writeMap() {
        do {
            try Data(StorageServerStandIn.nodesFile(servers).utf8).write(to: URL(fileURLWithPath: path))
        } catch {
            world.fail("the map can't be written: \(error)")
        }
    }

    func server(at address: OxenAddress) -> StorageServer? { servers.first { $0.endpoint == address.endpoint } }

    func swarm(of account: AccountID) -> UInt64? { SwarmRing(servers.map(\.swarm)).swarm(at: account.swarmPosition) }

    /// A swarm is added or dissolved, so that accounts move. The servers report it at once, the directory later.
    func changeMap() {
        let swarms = Set(servers.map(\.swarm)).sorted()
        if swarms.count > 2, world.chance(0.5) {
            let dissolved = world.generator.pick(swarms)
            servers.removeAll { $0.swarm == dissolved }
        } else {
            servers += makeSwarm()
        }
        world.note("the map has \(servers.count) servers")
        for node in world.nodes { node.connections?.mapChanged() }
        writeMap()
        for node in world.nodes {
            world.scheduler.after(world.random(1...30)) { [world] in world.scheduler.within(node.life) { node.service?.reloadFiles() } }
        }
    }

    /// - Returns: The reply to a request, and the accounts that are monitored from now on.
    func answer(_ body: [UInt8], by server: StorageServer) -> (reply: [UInt8], accepted: [AccountID]) {
        guard let value = try? BencodeValue(parsing: body[...], maximumValueCount: body.count) else { return ([], []) }
        let entries = value.list ?? [value]
        var (replies, accepted): ([BencodeValue], [AccountID]) = ([], [])
        for entry in entries {
            let answer = verifier.answer(entry.encoded())
            guard let account = answer.accepted.first else {
                world.fail("a storage server was asked with an invalid entry")
                continue
            }
            if swarm(of: account) == server.swarm {
                accepted.append(account)
                replies.append((try? BencodeValue(parsing: answer.reply[...], maximumValueCount: 16)) ?? .list([]))
            } else {
                replies.append(.dictionary(moved(account)))
            }
        }
        return ((value.list == nil ? replies.first ?? .list([]) : .list(replies)).encoded(), accepted)
    }

    /// An account is in another swarm: which, newer servers say.
    func moved(_ account: AccountID) -> BencodeDictionary {
        var fields: BencodeDictionary = ["errcode": .integer(6), "error": .text("wrong swarm")]
        guard let swarm = swarm(of: account), world.chance(0.7) else { return fields }
        let text = String(swarm, radix: 16)
        fields["swarm"] = .text(String(repeating: "0", count: 16 - text.count) + text)
        fields["snodes"] = .list(
            servers.filter { $0.swarm == swarm }.map {
                .dictionary([
                    "ip": .text($0.ip), "port_omq": .integer(Int64($0.port)), "pubkey_x25519": .text(hexString($0.publicKey)),
                ])
            })
        return fields
    }
}

/// The connections of one run of the node to storage servers.
///
/// Everything runs on one thread, so its state needs no lock.
final class SimulatedConnections: OxenMQConnections, @unchecked Sendable {
    private struct Link {
        /// nil until the server has greeted.
        var server: StorageServer?
        /// The accounts that the server monitors, until these times.
        var monitored: [AccountID: Int64] = [:]
        var isPaused = false
        var waiting: [OxenMQClient.Event] = []
    }

    private let world: World
    private let swarms: SimulatedSwarms
    private let node: NodeProcess
    private let life: Int
    private let handler: @Sendable (ConnectionNumber, OxenMQClient.Event) -> OxenMQClient.Flow
    private var links: [UInt64: Link] = [:]

    init(
        _ world: World, _ swarms: SimulatedSwarms, of node: NodeProcess,
        handler: @escaping @Sendable (ConnectionNumber, OxenMQClient.Event) -> OxenMQClient.Flow
    ) {
        (self.world, self.swarms, self.node, self.handler) = (world, swarms, node, handler)
        life = node.life
    }

    private func later(_ body: @escaping () -> Void) {
        world.scheduler.after(world.random(0.001...swarms.fault.delay)) { [self] in arrive(body) }
    }

    /// What comes while the node is suspended waits.
    private func arrive(_ body: @escaping () -> Void) {
        guard node.connections === self else { return }
        if node.isSuspended { return world.scheduler.after(.milliseconds(500)) { [self] in arrive(body) } }
        body()
    }

    private func handle(_ number: UInt64, _ event: OxenMQClient.Event) -> OxenMQClient.Flow {
        world.scheduler.within(life) { handler(ConnectionNumber(rawValue: number), event) }
    }

    func connect(_ connection: ConnectionNumber, to address: OxenAddress) {
        links[connection.rawValue] = Link()
        later { [self] in
            guard links[connection.rawValue] != nil else { return }
            if let server = swarms.server(at: address), !world.chance(swarms.fault.refusal) {
                links[connection.rawValue]?.server = server
                emit(connection.rawValue, .hello)
            } else {
                end(connection.rawValue, .refused)
            }
        }
    }

    func request(_ connection: ConnectionNumber, _ command: String, tag: [UInt8], body: [UInt8]) {
        guard command == MonitorEntry.command else { return world.fail("a storage server was asked for \(command)") }
        later { [self] in
            guard let server = links[connection.rawValue]?.server, !world.chance(swarms.fault.loss) else { return }
            let (reply, accepted) = swarms.answer(body, by: server)
            let end = world.scheduler.now + Duration.seconds(65 * 60).nanoseconds
            for account in accepted { links[connection.rawValue]?.monitored[account] = end }
            guard !world.chance(swarms.fault.loss) else { return }
            later { [self] in emit(connection.rawValue, .reply(tag: tag, parts: [reply])) }
        }
    }

    func resume(_ connection: ConnectionNumber) {
        guard links[connection.rawValue]?.isPaused == true else { return }
        links[connection.rawValue]?.isPaused = false
        let waiting = links[connection.rawValue]?.waiting ?? []
        links[connection.rawValue]?.waiting = []
        later { [self] in for event in waiting { emit(connection.rawValue, event) } }
    }

    func close(_ connection: ConnectionNumber) { links[connection.rawValue] = nil }
    func shutDown() async { links = [:] }

    private func emit(_ number: UInt64, _ event: OxenMQClient.Event) {
        guard let link = links[number] else { return }
        if link.isPaused {
            links[number]?.waiting.append(event)
        } else if handle(number, event) == .pause {
            links[number]?.isPaused = true
        }
    }

    private func end(_ number: UInt64, _ reason: OxenMQClient.Reason) {
        guard links.removeValue(forKey: number) != nil else { return }
        arrive { [self] in _ = handle(number, .closed(reason)) }
    }

    // MARK: The servers

    /// Each server of the account's swarm reports a message where it monitors the account.
    func report(_ message: NotifyMessage) {
        let swarm = swarms.swarm(of: message.account)
        for (number, link) in links.sorted(by: { $0.key < $1.key }) where link.server?.swarm == swarm {
            guard let end = link.monitored[message.account], end > world.scheduler.now else { continue }
            let copies = (world.chance(swarms.fault.loss) ? 0 : 1) + (world.chance(swarms.fault.repetition) ? 1 : 0)
            for _ in 0..<copies { later { [self] in emit(number, .command("notify.message", parts: [message.encoded()])) } }
        }
    }

    /// Ends connections, each with a probability.
    func cut(_ probability: Double) {
        for number in links.keys.sorted() where world.chance(probability) {
            end(number, world.generator.pick([.disconnected, .bye, .handshakeFailed]))
        }
    }

    func mapChanged() {
        for (number, link) in links.sorted(by: { $0.key < $1.key }) {
            guard let server = link.server else { continue }
            guard swarms.servers.contains(server) else {
                end(number, .bye)
                continue
            }
            for account in link.monitored.keys.sorted(by: { $0.hex < $1.hex }) where swarms.swarm(of: account) != server.swarm {
                links[number]?.monitored[account] = nil
                var notice = swarms.moved(account)
                notice["@"] = .bytes(account.bytes)
                later { [self] in emit(number, .command(MonitorEnded.command, parts: [BencodeValue.dictionary(notice).encoded()])) }
            }
        }
    }
}
