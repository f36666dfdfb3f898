import Core
@testable import SessionProtocol
import TestSupport
import Testing

/// Accounts that storage servers redirect to another swarm.
@Suite struct SwarmMoveTests {
    private static let far: UInt64 = 1 << 40

    private func hint(_ swarm: UInt64, _ servers: [UInt16] = []) -> SwarmHint {
        SwarmHint(swarm: swarm, servers: servers.map { server($0, swarm: swarm) })
    }

    private func expectEnded(
        _ network: inout Network, _ account: AccountID, hint: SwarmHint, by number: ConnectionNumber, at now: Instant,
        is expected: Bool = true
    ) {
        let isEnded = network.monitor.ended(account, hint: hint, by: number, at: now)
        #expect(isEnded == expected)
    }

    /// The actions until `end`.
    private func advance(_ network: inout Network, to end: Instant) -> [MonitorStateMachine.Action] {
        var actions = network.monitor.takeActions()
        while let wake = network.monitor.nextWakeUp, wake <= end {
            network.monitor.advance(to: wake)
            actions += network.monitor.takeActions()
        }
        return actions
    }

    /// Two servers of one swarm and one of a distant swarm; accounts of the first swarm, requested and accepted.
    private func network(_ accounts: Int = 1) -> (Network, [ConnectionNumber]) {
        var network = Network()
        let connections = network.connect([server(1, swarm: 100), server(2, swarm: 100), server(3, swarm: Self.far)])
        network.monitor.set(
            (0..<accounts).map { MonitoredSubscription(id: id($0), account: account(UInt64($0)), entryByteCount: 220) }, at: .zero)
        network.answerAll(at: .zero)
        return (network, connections)
    }

    @Test func anEndedAccountIsAskedForInTheSwarmThatTheMapKnows() {
        var (network, connections) = network()
        expectEnded(&network, account(0), hint: hint(Self.far), by: connections[0], at: .seconds(1))
        // A server's notice affects only its own connection.
        #expect(connections.map { network.monitor.accepts(account(0), from: $0) } == [false, true, false])
        let actions = advance(&network, to: .seconds(2))
        #expect(actions.contains(.requestMap))
        #expect(actions.asked == [connections[2]] && actions.connects.isEmpty)
        #expect(connections.map { network.monitor.accepts(account(0), from: $0) } == [false, true, true])
        // The other server sends the same notice.
        expectEnded(&network, account(0), hint: hint(Self.far), by: connections[1], at: .seconds(2))
        #expect(advance(&network, to: .seconds(3)).asked.isEmpty)
        expectEnded(&network, account(0), hint: hint(Self.far), by: connections[1], at: .seconds(3), is: false)
        #expect(network.monitor.figures.monitoredSubscriptions == 1)
        // A renewed subscription is requested there too; reports for a removed one are not accepted.
        network.monitor.set(id(0), account: account(0), entryByteCount: 220, at: .seconds(4))
        #expect(Set(network.monitor.takeActions().asked) == Set(connections))
        network.monitor.remove(id(0))
        #expect(!network.monitor.accepts(account(0), from: connections[2]))
    }

    @Test func aSwarmThatTheMapDoesNotKnowIsAskedByTheServersThatAreNamedUntilItDoes() throws {
        var (network, connections) = network()
        let other = server(9, swarm: 50)
        expectEnded(&network, account(0), hint: hint(50, [8, 9]), by: connections[0], at: .seconds(1))
        let made = advance(&network, to: .seconds(2)).connects
        #expect(made.map(\.server) == [server(8, swarm: 50), other])
        for (number, _) in made { network.monitor.connected(number, at: .seconds(2)) }
        let first = network.asks()
        #expect(first.map(\.connection) == made.map(\.number))
        for ask in first { network.monitor.replied(ask.tag, [.success], at: .seconds(2)) }
        #expect(made.allSatisfy { network.monitor.accepts(account(0), from: $0.number) })
        #expect(network.monitor.figures.knownServers == 3 && network.monitor.figures.connectedServers == 3)
        // A map without the named swarm changes nothing.
        let old = [server(1, swarm: 100), server(2, swarm: 100), server(3, swarm: Self.far)]
        network.monitor.update(old, at: .seconds(3))
        network.monitor.update(old + [server(4, swarm: Self.far + 1)], at: .seconds(4))
        #expect(made.allSatisfy { network.monitor.accepts(account(0), from: $0.number) })
        _ = network.monitor.takeActions()
        network.monitor.update(old + [other], at: .seconds(10))
        let fresh = network.monitor.takeActions().connects
        #expect(fresh.map(\.server) == [other])
        network.monitor.connected(fresh[0].number, at: .seconds(11))
        let last = network.asks()
        #expect(last.map(\.connection) == [fresh[0].number])
        for ask in last { network.monitor.replied(ask.tag, [.success], at: .seconds(11)) }
        #expect((made + fresh).allSatisfy { network.monitor.accepts(account(0), from: $0.number) })
        let later = advance(&network, to: .seconds(71))
        #expect(later.filter { if case .close = $0 { true } else { false } } == made.map { .close($0.number) })
        #expect(network.monitor.accepts(account(0), from: fresh[0].number))
        #expect(network.monitor.figures.knownServers == 4 && network.monitor.figures.monitoredSubscriptions == 1)
    }

    @Test func errcode6SaysWhereAnAccountIs() {
        var network = Network()
        let connections = network.connect([server(1, swarm: 100), server(3, swarm: Self.far)])
        network.monitor.set(id(0), account: account(0), entryByteCount: 220, at: .zero)
        network.monitor.replied(network.asks()[0].tag, [.refused(.wrongSwarm, hint(Self.far))], at: .seconds(1))
        #expect(advance(&network, to: .seconds(2)).asked == [connections[1]])
        #expect(network.monitor.accepts(account(0), from: connections[1]))
    }

    @Test func anAccountIsSentOnAtMostOnceASecond() {
        var (network, connections) = network()
        expectEnded(&network, account(0), hint: hint(Self.far), by: connections[0], at: .seconds(1))
        #expect(advance(&network, to: .milliseconds(1100)).asked == [connections[2]])
        expectEnded(&network, account(0), hint: hint(50, [9]), by: connections[1], at: .milliseconds(1200))
        #expect(advance(&network, to: .milliseconds(1900)).connects.map(\.server.swarm) == [50])
        // Only the last redirection within the interval takes effect.
        let until = advance(&network, to: .milliseconds(1999))
        #expect(until.asked.isEmpty)
        let first = advance(&network, to: .seconds(3))
        #expect(first.asked.isEmpty)
        #expect(network.monitor.subscriptions.places.values.first?.count == 2)
    }

    @Test func hintsOfLyingServersAreBounded() {
        var (network, connections) = network(400)
        var made: [StorageServer] = []
        for index in 0..<400 {
            let servers = (0..<16).map { UInt16(1000 + index * 16 + $0) }
            _ = network.monitor.ended(
                account(UInt64(index)), hint: hint(UInt64(1000 + index), servers), by: connections[0], at: .seconds(index))
            made += advance(&network, to: .seconds(index)).connects.map(\.server).filter { $0.swarm >= 1000 }
        }
        #expect(Set(made.map(\.swarm)).count == 4)
        #expect(Set(made).count == 64)
        // Reports of the honest server are accepted for all accounts.
        #expect((0..<400).allSatisfy { network.monitor.accepts(account(UInt64($0)), from: connections[1]) })
        #expect(network.monitor.swarms.count < 100 && network.monitor.figures.monitoredSubscriptions == 400)
        // An account has few places, and a server's later hint replaces its earlier one.
        for round in 1..<10 {
            let now = Instant.seconds(10_000 * round)
            _ = advance(&network, to: now)
            _ = network.monitor.ended(account(0), hint: hint(UInt64(1000 + round)), by: connections[0], at: now)
        }
        #expect(network.monitor.subscriptions.places.values.allSatisfy { $0.count <= 1 })
    }

    /// Each server of a hint could name others, and those again.
    @Test func serversOfHintsNameNoOthers() {
        var (network, connections) = network(400)
        var open: [(number: ConnectionNumber, server: StorageServer)] = []
        expectEnded(&network, account(0), hint: hint(1000, [1000, 1001]), by: connections[0], at: .seconds(1))
        open += advance(&network, to: .seconds(2)).connects
        #expect(open.count == 2)
        for (number, _) in open { network.monitor.connected(number, at: .seconds(2)) }
        network.answerAll(at: .seconds(2))
        // Neither another swarm, nor further servers of their own; the map's swarms are asked.
        for (index, swarm) in [UInt64(2000), 1000].enumerated() {
            let number = open[index].number
            expectEnded(&network, account(0), hint: hint(swarm, [2000, 2001]), by: number, at: .seconds(3))
            #expect(advance(&network, to: .seconds(4)).connects.isEmpty)
        }
        expectEnded(&network, account(1), hint: hint(1000), by: connections[0], at: .seconds(5))
        _ = advance(&network, to: .seconds(6))
        network.answerAll(at: .seconds(6))
        expectEnded(&network, account(1), hint: hint(Self.far), by: open[0].number, at: .seconds(7))
        #expect(advance(&network, to: .seconds(9)).asked == [connections[2]])
    }

    @Test func hintsDoNotNameLocalServersUnlessTheMapDoes() {
        let addresses = [
            "127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "224.0.0.1", "100.64.0.1", "::1", "fd00::1", "fe80::1", "ff02::1",
        ]
        for own in ["9.9.9.9", "10.0.0.9"] {
            var network = Network()
            let known = StorageServer(publicKey: [UInt8](repeating: 1, count: 32), ip: own, port: 22, swarm: 100)
            let connections = network.connect([known])
            network.monitor.set([MonitoredSubscription(id: id(0), account: account(0), entryByteCount: 220)], at: .zero)
            network.answerAll(at: .zero)
            let named = (addresses + ["8.8.8.8"]).enumerated().map { index, ip in
                StorageServer(publicKey: [UInt8](repeating: UInt8(2 + index), count: 32), ip: ip, port: 22, swarm: 1000)
            }
            expectEnded(&network, account(0), hint: SwarmHint(swarm: 1000, servers: named), by: connections[0], at: .seconds(1))
            let made = advance(&network, to: .seconds(2)).connects.map(\.server.ip)
            #expect(made == (own == "9.9.9.9" ? ["8.8.8.8"] : addresses + ["8.8.8.8"]))
        }
    }

    @Test func namedServersEndUnlessTheyAreNamedAgain() {
        var (network, connections) = network()
        expectEnded(&network, account(0), hint: hint(50, [9]), by: connections[0], at: .seconds(1))
        let made = advance(&network, to: .seconds(2)).connects
        network.monitor.connected(made[0].number, at: .seconds(2))
        network.answerAll(at: .seconds(2))
        network.monitor.remove(id(0))
        let later = advance(&network, to: .seconds(66 * 60))
        #expect(later.contains(.close(made[0].number)))
        #expect(network.monitor.namedIndex.isEmpty && network.monitor.subscriptions.places.isEmpty)
    }

    @Test func noticesThatComeAfterTheMapAreExpected() {
        var (network, connections) = network(3)
        let list = [server(1, swarm: 100), server(2, swarm: 100), server(3, swarm: Self.far), server(4, swarm: 1)]
        network.monitor.update(list, at: .seconds(1))
        let ended = (0..<4).map { _ in network.monitor.ended(account(0), hint: hint(1), by: connections[0], at: .seconds(2)) }
        #expect(ended == [true, true, true, false])
        expectEnded(&network, account(500), hint: hint(1), by: connections[1], at: .seconds(2), is: false)
        #expect(network.monitor.subscriptions.places.isEmpty)
    }

    @Test(.timeLimit(.minutes(2)), arguments: [false, true])
    func aMoveOfManyAccountsIsAskedForWithinASecond(mapFirst: Bool) {
        let accountCount = LongTests.areEnabled ? 50_000 : 5_000
        var network = Network()
        let old = (0..<5).map { server($0, swarm: 100_000) } + (5..<10).map { server($0, swarm: Self.far) }
        let connections = network.connect(old)
        let all = (0..<accountCount).map { MonitoredSubscription(id: id($0), account: account(UInt64($0)), entryByteCount: 220) }
        network.monitor.set(all, at: .zero)
        network.answerAll(at: .zero)
        let new = (10..<15).map { server($0, swarm: 25_000) }
        if mapFirst {
            network.monitor.update(old + new, at: .seconds(99))
            for (number, _) in network.connects() { network.monitor.connected(number, at: .seconds(99)) }
            network.answerAll(at: .seconds(99))
        }
        let hint = SwarmHint(swarm: 25_000, servers: new)
        var actions: [MonitorStateMachine.Action] = []
        for index in 0..<accountCount {
            for connection in connections.prefix(5) {
                expectEnded(&network, account(UInt64(index)), hint: hint, by: connection, at: .seconds(100))
            }
        }
        // Requests are answered immediately.
        var (asked, open) = ([ConnectionNumber: Int](), true)
        while open {
            actions = advance(&network, to: .seconds(101))
            open = !actions.isEmpty
            for action in actions {
                switch action {
                case .connect(let number, _): network.monitor.connected(number, at: .seconds(101))
                case .close: Issue.record("a connection was lost")
                case .ask(let number, let tag, let ids):
                    asked[number, default: 0] += ids.count
                    network.monitor.replied(tag, ids.map { _ in .success }, at: .seconds(101))
                case .requestMap: break
                }
            }
        }
        #expect(Array(asked.values) == (mapFirst ? [] : Array(repeating: accountCount, count: 5)))
    }
}
