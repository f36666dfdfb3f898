import Core
@testable import SessionProtocol
import TestSupport
import Testing

@Suite struct MonitorStateMachineTests {
    // MARK: Connecting

    @Test func everyServerOfTheMapIsConnected() {
        var network = Network()
        network.monitor.update([server(1, swarm: 100), server(2, swarm: 200)], at: .zero)
        #expect(network.connects().map(\.server) == [server(1, swarm: 100), server(2, swarm: 200)])
        network.monitor.update([server(1, swarm: 100), server(2, swarm: 200)], at: .seconds(1))
        #expect(network.monitor.takeActions().isEmpty)
    }

    @Test func pausesGrow() {
        var network = Network()
        network.monitor.update([server(1, swarm: 100)], at: .zero)
        var (number, now) = (network.connects()[0].number, Instant.zero)
        for (index, pause) in [10, 30, 60, 120, 120, 120].enumerated() {
            // HELLO alone does not reset the number of failures.
            if index.isMultiple(of: 2) { network.monitor.connected(number, at: now) }
            network.monitor.failed(number, at: now)
            (number, now) = network.expectPause(pause, from: now)
        }
    }

    @Test func answerEndsTheRowOfFailures() {
        var network = Network()
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.monitor.update([server(1, swarm: 100)], at: .zero)
        var (number, now) = (network.connects()[0].number, Instant.zero)
        for pause in [10, 30, 60] {
            network.monitor.failed(number, at: now)
            (number, now) = network.expectPause(pause, from: now)
        }
        network.monitor.connected(number, at: now)
        network.answerAll(at: now)
        network.monitor.failed(number, at: now)
        _ = network.expectPause(10, from: now)
    }

    @Test func connectionThatLastsEndsTheRowOfFailures() {
        var network = Network()
        network.monitor.update([server(1, swarm: 100)], at: .zero)
        var (number, now) = (network.connects()[0].number, Instant.zero)
        for pause in [10, 30, 60] {
            network.monitor.failed(number, at: now)
            (number, now) = network.expectPause(pause, from: now)
        }
        network.monitor.connected(number, at: now)
        network.monitor.failed(number, at: now + .seconds(60))
        _ = network.expectPause(10, from: now + .seconds(60))
    }

    @Test func serverThatNeverAnswersIsTriedEverMoreSeldom() {
        var network = Network()
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.monitor.update([server(1, swarm: 100)], at: .zero)
        var (number, now) = (network.connects()[0].number, Instant.zero)
        for pause in [10, 30, 60, 120] {
            network.monitor.connected(number, at: now)
            network.send(at: now)
            network.monitor.advance(to: now + .seconds(60))
            #expect(network.monitor.takeActions().last == .close(number))
            (number, now) = network.expectPause(pause, from: now + .seconds(60))
        }
    }

    @Test func connectionWithoutHelloIsGivenUp() {
        var network = Network()
        network.monitor.update([server(1, swarm: 100)], at: .zero)
        let number = network.connects()[0].number
        network.monitor.advance(to: .seconds(30))
        #expect(network.monitor.takeActions() == [.close(number)])
        network.monitor.connected(number, at: .seconds(31))
        #expect(network.monitor.figures.connectedServers == 0)
        network.monitor.advance(to: .seconds(40))
        #expect(network.connects().count == 1)
    }

    @Test func connectionsInTheMakingAreLimited() {
        var network = Network()
        let servers = (0..<1200).map { server(UInt16($0), swarm: UInt64($0 % 7) << 32) }
        network.monitor.update(servers, at: .zero)
        let first = network.connects()
        #expect(first.count == 500)
        network.monitor.connected(first[0].number, at: .seconds(1))
        network.monitor.failed(first[1].number, at: .seconds(1))
        #expect(network.connects().count == 2)
        // Servers that did not answer make room for others before they are retried.
        network.monitor.advance(to: .seconds(30))
        let later = network.connects()
        #expect(later.count == 498 && Set(later.map(\.server)).isDisjoint(with: first.map(\.server)))
    }

    // MARK: Asking

    @Test func newSubscriptionIsAskedAtEveryServerOfItsSwarmAtOnce() {
        var network = Network()
        let connections = network.connect([server(1, swarm: 100), server(2, swarm: 100), server(3, swarm: 1 << 40)])
        network.monitor.set(id(1), account: account(101), entryByteCount: 200, at: .seconds(1))
        #expect(network.asks().map(\.connection) == [connections[0], connections[1]])
    }

    @Test func helloAsksForAllAccountsOfTheSwarm() {
        var network = Network()
        for index in 0..<10 { network.monitor.set(id(index), account: account(90 + UInt64(index)), entryByteCount: 200, at: .zero) }
        network.monitor.set(id(10), account: account(1 << 40), entryByteCount: 200, at: .zero)
        network.connect([server(1, swarm: 100), server(2, swarm: 1 << 40)])
        let asks = network.asks()
        #expect(asks.map(\.ids) == [(0..<10).map { id($0) }, [id(10)]])
    }

    @Test func severalAreAskedInOneRequest() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        network.monitor.set(
            (0..<10).map { MonitoredSubscription(id: id($0), account: account(90 + UInt64($0)), entryByteCount: 200) }, at: .zero)
        #expect(network.asks().map(\.ids) == [(0..<10).map { id($0) }])
    }

    @Test func changesKeepTheirOrderAndNeighboursAreAskedForTogether() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        let one = (1...2).map { MonitoringChange.set(.init(id: id($0), account: account(UInt64($0)), entryByteCount: 200)) }
        network.monitor.apply(one + [.remove(id(1)), one[0]], at: .zero)
        #expect(network.asks().map(\.ids) == [[id(1), id(2)], [id(1)]] && network.monitor.figures.subscriptions == 2)
    }

    @Test(arguments: [(400, [500, 500, 200]), (1_200, [416, 416, 368])])
    func requestsAreAtMost500EntriesOr500KB(entryByteCount: Int, counts: [Int]) {
        var network = Network()
        for index in 0..<1_200 {
            network.monitor.set(id(index), account: account(1000 + UInt64(index)), entryByteCount: entryByteCount, at: .zero)
        }
        network.connect([server(1, swarm: 100)])
        let asks = network.asks()
        #expect(asks.map(\.ids.count) == counts)
        #expect(Set(asks.flatMap(\.ids)).count == 1_200)
    }

    @Test func renewedSubscriptionIsAskedAgain() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .seconds(1))
        network.answerAll(at: .seconds(2))
        network.monitor.set(id(1), account: account(5), entryByteCount: 210, at: .seconds(3))
        #expect(network.asks().map(\.ids) == [[id(1)]])
        #expect(network.monitor.accepts(account(5), from: connection))
        #expect(network.monitor.figures.subscriptions == 1)
    }

    /// Each request goes to all servers of the swarm, and anyone can renew a subscription as often as the network allows.
    @Test func aSubscriptionThatIsRenewedAllTheTimeIsAskedForOnceAMinute() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        var (askedAt, now): ([Instant], Instant) = ([], .zero)
        while now < .seconds(600) {
            network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: now)
            network.monitor.advance(to: now)
            for ask in network.asks() {
                askedAt.append(now)
                network.monitor.replied(ask.tag, [.success], at: now)
            }
            #expect(network.monitor.accepts(account(5), from: connection))
            now += .milliseconds(500)
        }
        // An app that is started a few times is asked for each time.
        #expect(askedAt.prefix(4) == [.zero, .milliseconds(500), .seconds(1), .milliseconds(1500)])
        #expect(10...14 ~= askedAt.count && zip(askedAt[3...], askedAt[4...]).allSatisfy { 50...75 ~= ($1 - $0) / .seconds(1) })
    }

    @Test func theLastOfManyRenewalsIsAskedForAndNotOnceItIsRemoved() {
        var network = Network()
        network.connect([server(1, swarm: 100), server(2, swarm: 100)])
        for number in 1...2 {
            for _ in 0..<10 { network.monitor.set(id(number), account: account(5), entryByteCount: 200, at: .seconds(1)) }
        }
        #expect(network.asks().map(\.ids).count == 16)
        // Others are not held up.
        network.monitor.set(id(3), account: account(6), entryByteCount: 200, at: .seconds(1))
        #expect(network.asks().map(\.ids) == [[id(3)], [id(3)]])
        network.monitor.remove(id(2))
        let (asks, at) = network.nextAsks()
        #expect(asks.map(\.ids) == [[id(1)], [id(1)]] && at <= .seconds(76))
        #expect(network.nextAsks().at >= .seconds(45 * 60))
    }

    @Test func aSubscriptionThatCouldNotBeReadIsAskedForAgainUnlessItIsRemoved() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        for number in 1...3 { network.monitor.set(id(number), account: account(5), entryByteCount: 200, at: .zero) }
        network.answerAll(at: .zero)
        network.monitor.askLater([id(1), id(2)], at: .seconds(1))
        network.monitor.remove(id(2))
        let (asks, at) = network.nextAsks()
        #expect(asks.map(\.ids) == [[id(1)]] && at == .seconds(16))
    }

    @Test func everySubscriptionOfAnAccountIsAsked() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.monitor.set(id(2), account: account(5), entryByteCount: 200, at: .zero)
        #expect(network.asks().map(\.ids) == [[id(1)], [id(2)]])
        network.monitor.remove(id(1))
        #expect(network.monitor.accepts(account(5), from: connection))
        network.monitor.remove(id(2))
        #expect(!network.monitor.accepts(account(5), from: connection))
        #expect(network.monitor.figures.accounts == 0)
    }

    // MARK: Renewal

    @Test func renewalComesAfter45To55Minutes() {
        for seed in 0..<50 {
            var network = Network(seed: UInt64(seed))
            network.connect([server(1, swarm: 100)])
            network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
            network.answerAll(at: .seconds(1))
            let (asks, at) = network.nextAsks()
            #expect(asks.map(\.ids) == [[id(1)]])
            #expect(.seconds(45 * 60) <= at && at <= .seconds(55 * 60))
        }
    }

    @Test func renewalsAreDrawnAtRandom() {
        let due = (0..<20).map { seed in
            var network = Network(seed: UInt64(seed))
            network.connect([server(1, swarm: 100)])
            network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
            network.answerAll(at: .seconds(1))
            return network.nextAsks().at
        }
        #expect(Set(due).count == 20)
    }

    @Test func renewalsOfOneServerComeTogether() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        for index in 0..<20 {
            network.monitor.set(id(index), account: account(UInt64(index)), entryByteCount: 200, at: .seconds(index))
            network.answerAll(at: .seconds(index))
        }
        network.monitor.advance(to: .seconds(56 * 60))
        #expect(network.asks().map(\.ids) == [(0..<20).map { id($0) }])
    }

    /// Ten thousand subscriptions that arrive one by one within 40 minutes form about 40 ranges.
    @Test func requestsOfOneMinuteAreKeptAsOne() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        for index in 0..<10_000 {
            let now = Instant.milliseconds(index * 240)
            network.monitor.set(id(index), account: account(UInt64(index)), entryByteCount: 200, at: now)
            network.answerAll(at: now)
        }
        #expect(network.monitor.servers[0].ranges.count <= 41)
        var renewed: [SubscriptionID: Instant] = [:]
        while renewed.count < 10_000 {
            let (asks, at) = network.nextAsks()
            guard !asks.isEmpty else { break }
            for ask in asks {
                network.monitor.replied(ask.tag, ask.ids.map { _ in .success }, at: at)
                for id in ask.ids where renewed[id] == nil { renewed[id] = at }
            }
        }
        #expect(renewed.count == 10_000)
        for (id, at) in renewed {
            let age = at - .milliseconds(Int(id.rawValue) * 240)
            #expect(.seconds(45 * 60) <= age && age <= .seconds(55 * 60))
        }
    }

    @Test func youngerRequestsAreNotRenewedBefore45Minutes() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        network.monitor.set(id(1), account: account(1), entryByteCount: 200, at: .zero)
        network.answerAll(at: .zero)
        network.monitor.set(id(2), account: account(2), entryByteCount: 200, at: .seconds(20 * 60))
        network.answerAll(at: .seconds(20 * 60))
        network.monitor.advance(to: .seconds(56 * 60))
        let asks = network.asks()
        #expect(asks.map(\.ids) == [[id(1)]])
        network.monitor.replied(asks[0].tag, [.success], at: .seconds(56 * 60))
        network.monitor.advance(to: .seconds(76 * 60))
        #expect(network.asks().map(\.ids) == [[id(2)]])
    }

    @Test func removedSubscriptionIsNotRenewed() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        network.monitor.set(id(1), account: account(1), entryByteCount: 200, at: .zero)
        network.monitor.set(id(2), account: account(2), entryByteCount: 200, at: .zero)
        network.answerAll(at: .zero)
        network.monitor.remove(id(1))
        // A new subscription reuses its slot, and is asked for once.
        network.monitor.set(id(3), account: account(3), entryByteCount: 200, at: .seconds(60))
        network.answerAll(at: .seconds(60))
        network.monitor.advance(to: .seconds(45 * 60 + 60 + 600))
        #expect(Set(network.asks().flatMap(\.ids)) == [id(2), id(3)])
    }

    @Test func accountsAreRemovedWithAllOfTheirSubscriptions() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        for (number, owner) in [(1, 1), (2, 1), (3, 2), (4, 3)] as [(Int, UInt64)] {
            network.monitor.set(id(number), account: account(owner), entryByteCount: 200, at: .zero)
        }
        network.monitor.remove(id(4))
        let (kept, left) = (account(2), account(1))
        network.monitor.removeAll { $0 != kept }
        #expect(network.monitor.accepts(kept, from: connection) && !network.monitor.accepts(left, from: connection))
        #expect(network.monitor.figures.subscriptions == 1 && network.monitor.figures.accounts == 1)
        network.monitor.removeAll { _ in true }
        #expect(network.monitor.figures.subscriptions == 0 && network.monitor.figures.accounts == 0)
    }

    // MARK: Accepted reports

    @Test func serverIsHeardFromTheRequestOn() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        #expect(!network.monitor.accepts(account(5), from: connection))
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .seconds(1))
        #expect(network.monitor.accepts(account(5), from: connection))
        #expect(!network.monitor.accepts(account(6), from: connection))
    }

    @Test func serverOfAnotherSwarmIsNotHeard() {
        var network = Network()
        let connections = network.connect([server(1, swarm: 100), server(2, swarm: 1 << 40)])
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .seconds(1))
        #expect(!network.monitor.accepts(account(5), from: connections[1]))
        #expect(!network.monitor.accepts(account(5), from: ConnectionNumber(rawValue: 99)))
    }

    @Test func lostConnectionIsNotHeard() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .seconds(1))
        network.monitor.failed(connection, at: .seconds(2))
        #expect(!network.monitor.accepts(account(5), from: connection))
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 99] as [Int64])
    func errcodeEndsIt(code: Int64) {
        var network = Network()
        let connections = network.connect([server(1, swarm: 100), server(2, swarm: 100)])
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .seconds(1))
        let asks = network.asks()
        network.monitor.replied(asks[0].tag, [.refused(MonitorRefusal(code: code))], at: .seconds(2))
        network.monitor.replied(asks[1].tag, [.success], at: .seconds(2))
        #expect(!network.monitor.accepts(account(5), from: connections[0]))
        #expect(network.monitor.accepts(account(5), from: connections[1]))
        #expect(network.monitor.figures.refusals == 1)
        // After the next renewal its reports are accepted again.
        for minutes in 1...56 {
            network.monitor.advance(to: .seconds(60 * minutes))
            network.answerAll(at: .seconds(60 * minutes))
        }
        #expect(network.monitor.accepts(account(5), from: connections[0]))
    }

    @Test func errorOfOxenMQRefusesUntilTheNextRenewal() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.monitor.refused(network.asks()[0].tag, at: .zero)
        network.monitor.refused(RequestTag(rawValue: 99), at: .zero)
        #expect(network.monitor.takeActions().isEmpty && !network.monitor.accepts(account(5), from: connection))
        let (asks, at) = network.nextAsks()
        #expect(asks.map(\.ids) == [[id(1)]] && at >= .seconds(45 * 60))
        #expect(network.monitor.accepts(account(5), from: connection))
    }

    /// Anyone can repeat subscriptions that storage servers refuse.
    @Test(arguments: [MonitorRefusal.signature, .wrongSwarm], [1, 3])
    func refusalsOfFormerSubscriptionsAreForgotten(refusal: MonitorRefusal, atOnce: Int) {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        func expectCounts(_ counts: ClosedRange<Int>) {
            let server = network.monitor.servers[0]
            #expect(counts.contains(server.refused.count) && server.wrongSwarmCounts.count <= counts.upperBound)
            #expect(server.retries.count <= counts.upperBound && network.monitor.figures.refusals == server.refused.count)
        }
        for number in 1...200 {
            // Some renewals come before the answer to the former request.
            for _ in 0..<atOnce { network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .seconds(300 * number)) }
            network.refuseAll(refusal, at: .seconds(300 * number))
            expectCounts(1...2)
            #expect(!network.monitor.accepts(account(5), from: connection))
        }
        network.monitor.remove(id(1))
        expectCounts(0...0)
        // As does a device that subscribes and unsubscribes.
        for number in 2...200 {
            network.monitor.set(id(number), account: account(5), entryByteCount: 200, at: .seconds(100_000))
            if atOnce == 1 { network.refuseAll(refusal, at: .seconds(100_000)) }
            network.monitor.remove(id(number))
            network.refuseAll(refusal, at: .seconds(100_000))
            expectCounts(0...0)
        }
    }

    @Test func silentServerIsDisconnected() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.send(at: .zero)
        network.monitor.advance(to: .seconds(59))
        #expect(network.monitor.takeActions().isEmpty)
        network.monitor.advance(to: .seconds(60))
        #expect(network.monitor.takeActions() == [.close(connection)])
    }

    /// While the store can't be read, no request is sent.
    @Test func serverIsGivenTimeFromWhenItsRequestIsSent() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        let waiting = network.asks()[0].tag
        network.monitor.set(id(2), account: account(6), entryByteCount: 200, at: .seconds(500))
        let sentFirst = network.asks()[0].tag
        network.monitor.sent(sentFirst, at: .seconds(1_000))
        network.monitor.advance(to: .seconds(1_001))
        #expect(network.monitor.takeActions().isEmpty && network.monitor.figures.connectedServers == 1)
        #expect(network.monitor.nextWakeUp == .seconds(1_060))
        network.monitor.sent(waiting, at: .seconds(1_030))
        network.monitor.replied(sentFirst, [.success], at: .seconds(1_040))
        network.monitor.advance(to: .seconds(1_089))
        #expect(network.monitor.takeActions().isEmpty && network.monitor.nextWakeUp == .seconds(1_090))
        network.monitor.advance(to: .seconds(1_090))
        #expect(network.monitor.takeActions() == [.close(connection)])
    }

    @Test func answerThatIsNoneEndsTheConnection() {
        for outcomes in [nil, [], [MonitorOutcome.success, .success]] {
            var network = Network()
            let connection = network.connect([server(1, swarm: 100)])[0]
            network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
            network.monitor.replied(network.asks()[0].tag, outcomes, at: .seconds(1))
            #expect(network.monitor.takeActions() == [.close(connection)])
        }
    }

    @Test func answersThatNobodyWaitsForAreIgnored() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        network.monitor.replied(RequestTag(rawValue: 77), [.success], at: .zero)
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        let tag = network.asks()[0].tag
        network.monitor.failed(connection, at: .seconds(1))
        network.monitor.replied(tag, [.refused(.wrongSwarm)], at: .seconds(2))
        network.monitor.failed(connection, at: .seconds(2))
        network.monitor.connected(connection, at: .seconds(2))
        #expect(network.monitor.takeActions().isEmpty)
    }

    // MARK: errcode 6

    @Test func wrongSwarmWantsTheMapAtMostOnceAMinute() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        var requests: [Int] = []
        for index in 0..<200 {
            network.monitor.set(id(index), account: account(UInt64(index)), entryByteCount: 200, at: .seconds(index))
            network.monitor.advance(to: .seconds(index))
            for action in network.monitor.takeActions() {
                if case .ask(_, let tag, let ids) = action {
                    network.monitor.replied(tag, ids.map { _ in .refused(.wrongSwarm) }, at: .seconds(index))
                }
                if action == .requestMap { requests.append(index) }
            }
            if network.monitor.takeActions().contains(.requestMap) { requests.append(index) }
        }
        #expect(requests.first == 0 && requests.count == 4)
        #expect(zip(requests, requests.dropFirst()).allSatisfy { $1 - $0 >= 60 })
    }

    @Test func wrongSwarmIsAskedAgainSoon() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.monitor.replied(network.asks()[0].tag, [.refused(.wrongSwarm)], at: .zero)
        var asked: [Int] = []
        for second in 1...400 {
            network.monitor.advance(to: .seconds(second))
            for ask in network.asks() {
                asked.append(second)
                network.monitor.replied(ask.tag, [asked.count < 4 ? .refused(.wrongSwarm) : .success], at: .seconds(second))
            }
        }
        #expect(asked == [10, 40, 100, 220])
        #expect(network.monitor.accepts(account(5), from: connection))
    }

    // MARK: The map

    @Test func newServerOfASwarmIsAsked() {
        var network = Network()
        network.connect([server(1, swarm: 100)])
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.answerAll(at: .zero)
        network.connect([server(1, swarm: 100), server(2, swarm: 100)])
        #expect(network.asks().map(\.ids) == [[id(1)]])
    }

    @Test func accountMovesToItsNewSwarm() {
        var network = Network()
        let old = network.connect([server(1, swarm: 100), server(2, swarm: 9000)])
        network.monitor.set(id(1), account: account(5000), entryByteCount: 200, at: .zero)
        network.monitor.set(id(2), account: account(50), entryByteCount: 200, at: .zero)
        network.answerAll(at: .zero)
        #expect(network.monitor.accepts(account(5000), from: old[1]))
        let new = network.connect([server(1, swarm: 100), server(2, swarm: 9000), server(3, swarm: 5001)])
        #expect(network.asks().map(\.ids) == [[id(1)]])
        #expect(network.monitor.accepts(account(5000), from: new[0]))
        #expect(!network.monitor.accepts(account(5000), from: old[1]))
        #expect(network.monitor.accepts(account(50), from: old[0]))
        // The account moves back.
        network.monitor.update([server(1, swarm: 100), server(2, swarm: 9000)], at: .seconds(100))
        let actions = network.monitor.takeActions()
        #expect(actions.contains(.close(new[0])) && actions.contains { if case .ask(old[1], _, [id(1)]) = $0 { true } else { false } })
    }

    @Test func serverThatChangesItsSwarmKeepsItsConnection() {
        var network = Network()
        let connections = network.connect([server(1, swarm: 100), server(2, swarm: 9000)])
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.answerAll(at: .zero)
        network.monitor.update([server(1, swarm: 100), server(2, swarm: 100)], at: .seconds(1))
        let actions = network.monitor.takeActions()
        #expect(actions.count == 1)
        guard case .ask(connections[1], _, [id(1)]) = actions.first else {
            Issue.record("\(actions)")
            return
        }
    }

    @Test func serverThatChangesItsAddressIsReconnected() {
        var network = Network()
        let connection = network.connect([server(1, swarm: 100)])[0]
        var moved = server(1, swarm: 100)
        moved = StorageServer(publicKey: moved.publicKey, ip: "10.9.9.9", port: 1, swarm: 100)
        network.monitor.update([moved], at: .seconds(1))
        let actions = network.monitor.takeActions()
        #expect(actions.first == .close(connection) && actions.count == 2)
        guard case .connect(_, moved) = actions.last else {
            Issue.record("\(actions)")
            return
        }
    }

    @Test func serverThatLeavesIsClosed() {
        var network = Network()
        let connections = network.connect([server(1, swarm: 100), server(2, swarm: 100)])
        network.monitor.update([server(2, swarm: 100)], at: .seconds(1))
        #expect(network.monitor.takeActions() == [.close(connections[0])])
        #expect(network.monitor.figures.knownServers == 1)
        network.monitor.update([], at: .seconds(2))
        #expect(network.monitor.takeActions() == [.close(connections[1])])
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .seconds(3))
        #expect(network.monitor.figures.monitoredSubscriptions == 0)
        network.connect([server(2, swarm: 100)])
        #expect(network.asks().map(\.ids) == [[id(1)]])
    }

    // MARK: Bounds

    @Test func unansweredRequestsAreBounded() {
        var configuration = MonitorStateMachine.Configuration()
        configuration.maximumUnansweredByteCount = 10_000
        var network = Network(configuration: configuration)
        for index in 0..<40 { network.monitor.set(id(index), account: account(UInt64(index)), entryByteCount: 200, at: .zero) }
        network.connect((0..<10).map { server($0, swarm: 100) })
        var (asked, rounds) = (0, 0)
        while true {
            let asks = network.asks()
            guard !asks.isEmpty else { break }
            rounds += 1
            #expect(asks.reduce(0) { $0 + $1.ids.count * 200 + 2 } <= 10_000)
            asked += asks.reduce(0) { $0 + $1.ids.count }
            for ask in asks { network.monitor.replied(ask.tag, ask.ids.map { _ in .success }, at: .seconds(1)) }
        }
        #expect(asked == 400 && rounds == 10)
    }

    @Test func requestLargerThanTheBoundIsSentAlone() {
        var configuration = MonitorStateMachine.Configuration()
        configuration.maximumUnansweredByteCount = 100
        configuration.maximumRequestByteCount = 100
        var network = Network(configuration: configuration)
        network.monitor.set(id(1), account: account(1), entryByteCount: 5000, at: .zero)
        network.connect([server(1, swarm: 100)])
        #expect(network.asks().count == 1)
    }

    @Test func figuresCount() {
        var network = Network()
        network.connect([server(1, swarm: 100), server(2, swarm: 100)])
        network.monitor.update([server(1, swarm: 100), server(2, swarm: 100), server(3, swarm: 1 << 40)], at: .zero)
        network.monitor.set(id(1), account: account(5), entryByteCount: 200, at: .zero)
        network.monitor.set(id(2), account: account(1 << 40), entryByteCount: 200, at: .zero)
        let figures = network.monitor.figures
        #expect(figures.knownServers == 3 && figures.connectedServers == 2 && figures.connectingServers == 1)
        #expect(figures.knownSwarms == 2 && figures.reachableSwarms == 1)
        #expect(figures.subscriptions == 2 && figures.accounts == 2 && figures.monitoredSubscriptions == 1)
    }
}

// MARK: -

/// A monitor with a simulated network.
struct Network {
    var monitor: MonitorStateMachine

    init(configuration: MonitorStateMachine.Configuration = .init(), seed: UInt64 = 1) {
        monitor = MonitorStateMachine(configuration: configuration, seed: seed)
    }

    mutating func connects() -> [(number: ConnectionNumber, server: StorageServer)] { monitor.takeActions().connects }
    mutating func asks() -> [(connection: ConnectionNumber, tag: RequestTag, ids: [SubscriptionID])] { monitor.takeActions().asks }

    /// Sends the requests, which are not answered.
    mutating func send(at now: Instant) {
        for ask in asks() { monitor.sent(ask.tag, at: now) }
    }

    /// Updates the map; its new servers send HELLO. Returns their connections.
    @discardableResult mutating func connect(_ servers: [StorageServer]) -> [ConnectionNumber] {
        monitor.update(servers, at: .zero)
        let made = connects()
        for (number, _) in made { monitor.connected(number, at: .zero) }
        return made.map(\.number)
    }

    /// Expects no connection before a pause is over, and one afterwards.
    mutating func expectPause(_ seconds: Int, from now: Instant) -> (number: ConnectionNumber, at: Instant) {
        let end = now + .seconds(seconds)
        #expect(monitor.nextWakeUp.map { $0 <= end } == true)
        monitor.advance(to: end - .milliseconds(1))
        #expect(monitor.takeActions().isEmpty)
        monitor.advance(to: end)
        let made = connects()
        #expect(made.count == 1)
        return (made.first?.number ?? ConnectionNumber(rawValue: 0), end)
    }

    /// Advances the time until the monitor sends requests.
    mutating func nextAsks() -> (asks: [(connection: ConnectionNumber, tag: RequestTag, ids: [SubscriptionID])], at: Instant) {
        while let wake = monitor.nextWakeUp {
            monitor.advance(to: wake)
            let asks = asks()
            if !asks.isEmpty { return (asks, wake) }
        }
        return ([], .zero)
    }

    mutating func refuseAll(_ refusal: MonitorRefusal, at now: Instant) {
        for ask in asks() { monitor.replied(ask.tag, ask.ids.map { _ in .refused(refusal) }, at: now) }
    }

    mutating func answerAll(at now: Instant) {
        for ask in asks() { monitor.replied(ask.tag, ask.ids.map { _ in .success }, at: now) }
    }
}

extension [MonitorStateMachine.Action] {
    var connects: [(number: ConnectionNumber, server: StorageServer)] {
        compactMap { if case .connect(let number, let server) = $0 { (number, server) } else { nil } }
    }

    var asks: [(connection: ConnectionNumber, tag: RequestTag, ids: [SubscriptionID])] {
        compactMap { if case .ask(let connection, let tag, let ids) = $0 { (connection, tag, ids) } else { nil } }
    }

    var asked: [ConnectionNumber] { asks.map(\.connection) }
}

func server(_ number: UInt16, swarm: UInt64) -> StorageServer {
    StorageServer(
        publicKey: [UInt8(number >> 8), UInt8(number & 255)] + [UInt8](repeating: 0, count: 30), ip: "10.0.0.1", port: 22, swarm: swarm)
}

func id(_ number: Int) -> SubscriptionID { SubscriptionID(rawValue: Int64(number)) }
