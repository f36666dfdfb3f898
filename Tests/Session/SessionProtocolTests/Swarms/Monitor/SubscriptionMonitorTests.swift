import Foundation
import Core
@testable import SessionProtocol
import SessionStandIns
import Synchronization
import TestSupport
import Testing
import WakuCrypto

/// With storage servers and an oxend in Python (pyzmq with CURVE, signatures checked by PyNaCl), if `LIBP2P_PYTHON` names a Python that has both.
@Suite(.enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python with pyzmq: see Deploy/test"), .timeLimit(.minutes(10)))
struct SubscriptionMonitorTests {
    /// Two distant swarms.
    private let swarms: [UInt64] = [1 << 62, 1 << 62, 3 << 62]

    // MARK: Asking

    @Test func newSubscriptionIsMonitoredByEveryServerOfItsSwarm() async throws {
        let test = try await MonitoredNetwork(swarms: swarms)
        try await test.connected(3)
        let client = try test.client(in: swarms[0], of: swarms)
        test.subscribe(client)
        for index in 0...1 {
            try await test.asked(index, client)
            try await test.received(index, client, "of-\(index)")
        }
        #expect(
            test.network.peer.said("request") == [["0", "1"], ["1", "1"]]
                || test.network.peer.said("request") == [["1", "1"], ["0", "1"]])
        // One read for both servers, unless the second was asked after the first read had started.
        #expect(test.store.reads <= 2)
        // During a change, figures may still be those before it.
        try await eventually { test.monitor.figures.monitoredSubscriptions == 1 && test.monitor.figures.reachableSwarms == 2 }
        let figures = test.monitor.figures
        #expect(figures.subscriptions == 1 && figures.monitoredSubscriptions == 1 && figures.knownServers == 3)
        #expect(figures.knownSwarms == 2 && figures.reachableSwarms == 2 && figures.mapReceivedAt != nil && figures.isOxendConnected == nil)
        #expect(test.events.count(.received) == 2 && test.events.asked == 2 && test.events.count(.connected) == 3)
        try await test.stop()
    }

    @Test func figuresTellWhenTheLimitOfOpenFilesAllowsTooFewConnections() async throws {
        let test = try await MonitoredNetwork(swarms: swarms, { $0.connections.maximumConnections = 2 })
        try await test.connected(2)
        try await eventually { test.monitor.figures.knownServers == 3 }
        #expect(test.monitor.figures.connectionLimit == 2 && test.monitor.connectionLimit(for: 2) == nil)
        try await test.stop()
    }

    @Test func subscriptionsOfAMomentAreAskedTogether() async throws {
        let test = try await MonitoredNetwork(swarms: [1], { $0.gathering = .milliseconds(200) })
        try await test.connected(1)
        let clients = try (0..<100).map { _ in try test.client() }
        for client in clients { test.subscribe(client) }
        for client in clients { try await test.asked(0, client) }
        #expect(test.network.peer.said("request").count < 20)
        try await test.stop()
    }

    @Test func loadedSubscriptionsAreAskedInBatches() async throws {
        let test = try await MonitoredNetwork(swarms: [1])
        let clients = try (0..<1500).map { _ in try test.client() }
        var loaded: [MonitoredSubscription] = []
        for (number, client) in clients.enumerated() {
            let entry = client.monitorEntry(of: SessionClient.Device(token: "token"), at: 1_700_000_000)
            let id = SubscriptionID(rawValue: Int64(number))
            test.store.set(id, entry)
            loaded.append(MonitoredSubscription(id: id, account: client.account, entryByteCount: entry.bytes.count))
        }
        test.monitor.load(Array(loaded[..<500]))
        test.monitor.load(Array(loaded[500...]))
        try await eventually {
            test.network.peer.said("request").compactMap { Int($0[1]) }.reduce(0, +) == 1500
        }
        // At most 500 entries per request.
        #expect(test.network.peer.said("request").count <= 4)
        try await test.stop()
    }

    @Test func subscriptionsAreRenewed() async throws {
        let test = try await MonitoredNetwork(swarms: [1], { $0.swarms.renewal = .milliseconds(300) })
        let client = try test.client()
        test.subscribe(client)
        try await test.asked(0, client, times: 4)
        try await eventually { test.monitor.figures.connectedServers == 1 }
        #expect(test.events.count(.disconnected) == 0)
        try await test.stop()
    }

    @Test func renewedSubscriptionIsAskedWithItsNewSignature() async throws {
        let test = try await MonitoredNetwork(swarms: [1])
        try await test.connected(1)
        let client = try test.client()
        let subscription = test.subscribe(client, signedAt: 1_700_000_000)
        try await test.asked(0, client)
        test.renew(subscription, client, signedAt: 1_700_000_007)
        try await test.asked(0, client, times: 2)
        #expect(test.network.peer.said("entry").map { $0[2] } == ["1700000000", "1700000007"])
        try await eventually { test.monitor.figures.subscriptions == 1 }
        try await test.stop()
    }

    @Test func unsubscribedAccountIsNotAcceptedNorAskedAgain() async throws {
        let test = try await MonitoredNetwork(swarms: [1])
        let (gone, kept) = (try test.client(), try test.client())
        let subscription = test.subscribe(gone)
        test.subscribe(kept)
        for client in [gone, kept] { try await test.asked(0, client) }
        test.unsubscribe(subscription)
        try await eventually { test.monitor.figures.subscriptions == 1 }
        try test.network.report(0, gone.account, "late")
        try await test.dropped(.unsolicited)
        try await test.network.tell("bye 0")
        try await test.asked(0, kept, times: 2)
        #expect(test.network.entryCount(0, gone.account) == 1 && test.inbox.hashes.isEmpty)
        try await test.stop()
    }

    /// The state machine has already counted it in the request.
    @Test func subscriptionThatTheStoreHasLostIsReplacedInARequest() async throws {
        let test = try await MonitoredNetwork(swarms: [1], { $0.swarms.renewal = .milliseconds(300) })
        let (gone, kept) = (try test.client(), try test.client())
        let subscription = test.subscribe(gone)
        test.subscribe(kept)
        for client in [gone, kept] { try await test.asked(0, client) }
        test.store.set(subscription.id, nil)
        let count = test.network.entryCount(0, kept.account)
        try await test.asked(0, kept, times: count + 4)
        try await test.received(0, kept, "after")
        #expect(test.events.count(.disconnected) == 0)
        try await test.stop()
    }

    @Test func subscriptionThatHasEndedIsRemovedAtItsRenewal() async throws {
        let test = try await MonitoredNetwork(swarms: [1], { $0.swarms.renewal = .milliseconds(300) })
        let client = try test.client()
        let subscription = test.subscribe(client)
        try await test.asked(0, client)
        test.store.end(subscription.id)
        try await eventually { test.monitor.figures.subscriptions == 0 }
        try await test.stop()
    }

    @Test func requestWhoseSubscriptionsAreAllGoneIsNotSent() async throws {
        let test = try await MonitoredNetwork(swarms: [1], { $0.swarms.renewal = .milliseconds(100) })
        let client = try test.client()
        let subscription = test.subscribe(client)
        try await test.asked(0, client)
        test.store.set(subscription.id, nil)
        let reads = test.store.reads
        try await eventually { test.store.reads >= reads + 10 }
        // No reply is awaited; its timeout would close the connection.
        try await eventually { test.monitor.state.withLock { $0.monitor.unansweredByteCount } == 0 }
        #expect(test.events.count(.disconnected) == 0)
        try await test.stop()
    }

    @Test func storeThatCannotBeReadIsReadAgain() async throws {
        let test = try await MonitoredNetwork(swarms: [1]) { $0.retryInterval = .milliseconds(20) }
        try await test.connected(1)
        test.store.setReadable(false)
        let client = try test.client()
        test.subscribe(client)
        try await eventually { test.store.reads >= 3 }
        test.store.setReadable(true)
        try await test.asked(0, client)
        #expect(test.log.lines.count { $0.contains("failed to read subscriptions") } == 1)
        #expect(test.events.count(.disconnected) == 0 && test.network.peer.said("greeted").count == 1)
        try await test.stop()
    }

    // MARK: Refusals

    @Test(arguments: [1, 2, 3, 4, 5]) func serverThatRefusesAnAccountIsNotHeardAboutIt(errcode: Int64) async throws {
        let test = try await MonitoredNetwork(swarms: [1, 1])
        try await test.connected(2)
        let client = try test.client()
        try await test.network.tell("refuse 0 \(client.account.hex) \(errcode)")
        test.subscribe(client)
        try await test.asked(0, client, errcode: Int(errcode))
        try await test.asked(1, client)
        try await eventually { test.events.count(.refused(MonitorRefusal(code: errcode))) == 1 && test.monitor.figures.refusals == 1 }
        // From now on the server accepts the account, and may report its messages.
        try await test.network.tell("refuse 0 \(client.account.hex) 0")
        let lie = NotifyMessage.sample(of: client.account, hash: PythonNetwork.hash("lie"))
        try await test.network.tell("tell 0 " + hexString(lie.encoded()))
        try await test.dropped(.unsolicited)
        try await test.received(1, client, "truth")
        #expect(test.inbox.hashes == [PythonNetwork.hash("truth")])
        try await test.stop()
    }

    @Test func wrongSwarmHasOxendAskedAgainAndIsTriedAgain() async throws {
        let test = try await MonitoredNetwork(swarms: [1], usesOxend: true, { $0.oxend.shortestInterval = .zero })
        try await test.connected(1)
        let client = try test.client()
        try await test.network.tell("refuse 0 \(client.account.hex) 6")
        test.subscribe(client)
        try await eventually { test.network.peer.said("listed").count >= 2 }
        try await eventually { test.events.count(.refused(.wrongSwarm)) >= 1 }
        try await test.network.tell("refuse 0 \(client.account.hex) 0")
        try await test.asked(0, client)
        try await test.received(0, client, "after")
        try await test.stop()
    }

    @Test(arguments: ["FORBIDDEN", "UNKNOWNCOMMAND", "NO_REPLY_TAG"]) func errorOfOxenMQRefusesTheRequest(word: String) async throws {
        let test = try await MonitoredNetwork(swarms: [1])
        try await test.connected(1)
        try await test.network.tell("error 0 \(word)")
        let (refused, heard) = (try test.client(), try test.client())
        test.subscribe(refused)
        try await eventually { test.events.count(.refused(.other)) == 1 }
        try await test.network.tell("error 0 -")
        test.subscribe(heard)
        try await test.asked(0, heard)
        try await test.received(0, heard, "after")
        #expect(test.events.count(.disconnected) == 0)
        try await test.stop()
    }

    @Test func replyToAnotherServersRequestIsDropped() async throws {
        let test = try await MonitoredNetwork(swarms: [1, 1])
        try await test.connected(2)
        try await test.network.tell("silent 1 1")
        let client = try test.client()
        test.subscribe(client)
        for index in 0...1 { try await test.asked(index, client) }
        try await test.network.tell("forge 0 1")
        try await test.dropped(.unknownReply)
        // Reports of the other server are accepted, because it has not refused.
        try await test.received(1, client, "heard")
        #expect(test.monitor.figures.refusals == 0)
        try await test.stop()
    }

    // MARK: Connections

    @Test func byeIsFollowedByAnotherConnection() async throws {
        let test = try await MonitoredNetwork(swarms: [1])
        let client = try await test.monitoredClient()
        try await test.network.tell("bye 0")
        try await test.asked(0, client, times: 2)
        try await test.received(0, client, "after")
        #expect(test.network.peer.said("greeted").count == 2)
        try await test.stop()
    }

    @Test func serverThatComesBackIsAskedAgain() async throws {
        let test = try await MonitoredNetwork(swarms: [1])
        let client = try await test.monitoredClient()
        try await test.network.tell("down 0")
        try await eventually { test.monitor.figures.connectedServers == 0 }
        #expect(test.monitor.figures.monitoredSubscriptions == 0 && test.monitor.figures.reachableSwarms == 0)
        try await test.network.tell("up 0")
        try await test.asked(0, client, times: 2)
        try await test.received(0, client, "after")
        #expect(test.log.contains("no storage server connected"))
        try await test.stop()
    }

    @Test func serverThatDoesNotAnswerIsConnectedAgain() async throws {
        let test = try await MonitoredNetwork(swarms: [1], { $0.swarms.replyTimeout = .milliseconds(300) })
        try await test.connected(1)
        try await test.network.tell("silent 0 1")
        let client = try test.client()
        test.subscribe(client)
        try await eventually { test.network.peer.said("greeted").count >= 2 }
        try await test.network.tell("silent 0 0")
        try await test.receivedInTheEnd(0, client)
        try await test.stop()
    }

    @Test func cancellationSendsByeAndDeliversAcceptedMessages() async throws {
        let test = try await MonitoredNetwork(swarms: [1, 1])
        let client = try test.client()
        test.subscribe(client)
        for index in 0...1 { try await test.asked(index, client) }
        test.inbox.close()
        try test.network.report(0, client.account, "first")
        try await eventually { test.inbox.isBusy }
        try test.network.report(1, client.account, "second")
        try await eventually { test.events.count(.received) == 2 }
        let stopping = Task { try await test.stop() }
        try await eventually { test.network.peer.said("bye").count == 2 }
        test.inbox.open()
        try await stopping.value
        #expect(test.inbox.hashes == [PythonNetwork.hash("first"), PythonNetwork.hash("second")])
        // Calls after the end do nothing.
        test.subscribe(client)
        test.monitor.reloadServers()
    }

    // MARK: Reports

    @Test func uselessReportsAreDroppedAndCountedByReason() async throws {
        let test = try await MonitoredNetwork(swarms: swarms)
        let client = try test.client(in: swarms[0], of: swarms)
        let stranger = try test.client(in: swarms[2], of: swarms)
        test.subscribe(client)
        test.subscribe(stranger)
        try await test.asked(0, client)
        try await test.asked(2, stranger)
        func tell(_ message: NotifyMessage) async throws { try await test.network.tell("tell 0 " + hexString(message.encoded())) }
        func message(
            _ account: AccountID, hash: String = PythonNetwork.hash("x"), t: Int64 = 1, z: Int64 = .max, data: [UInt8]? = nil
        ) -> NotifyMessage {
            NotifyMessage(account: account, hash: hash, namespace: 0, storedAt: t, expiresAt: z, data: data)
        }
        try await test.network.tell("tell 0 " + hexString(Array("nothing".utf8)))
        try await test.dropped(.malformed)
        try await tell(message(client.account, t: -1))
        try await test.dropped(.negativeTime)
        try await tell(message(client.account, hash: String(repeating: "\n", count: 40)))
        try await test.dropped(.badHash)
        try await tell(message(client.account, data: [UInt8](repeating: 0, count: NotifyMessage.maximumDataByteCount + 1)))
        try await test.dropped(.tooLarge)
        try await tell(message(client.account, t: 1, z: 2))
        try await test.dropped(.expired)
        // An account that is not monitored, and one that is monitored at another server.
        try await tell(message(try test.client().account))
        try await tell(message(stranger.account))
        try await test.dropped(.unsolicited, 2)
        #expect(test.inbox.hashes.isEmpty && test.events.count(.received) == 0)
        try await test.received(0, client, "right")
        #expect(test.events.count(.disconnected) == 0)
        try await test.stop()
    }

    @Test func reportIsAcceptedBeforeTheRequestIsAnswered() async throws {
        let test = try await MonitoredNetwork(swarms: [1])
        try await test.connected(1)
        try await test.network.tell("silent 0 1")
        let client = try await test.monitoredClient()
        try await test.received(0, client, "early")
        try await test.stop()
    }

    @Test func slowReceiverHoldsUpOnlyServersThatSendALot() async throws {
        let test = try await MonitoredNetwork(swarms: swarms) { $0.messages.connectionByteCount = 200_000 }
        let busy = try test.client(in: swarms[0], of: swarms)
        let quiet = try test.client(in: swarms[2], of: swarms)
        for client in [busy, quiet] { test.subscribe(client) }
        try await test.asked(0, busy)
        try await test.asked(2, quiet)
        test.inbox.close()
        for number in 0..<200 { try test.network.report(0, busy.account, "busy-\(number)", byteCount: 20_000) }
        try await eventually { test.monitor.messages.withLock { $0.byteCount } > 200_000 }
        try test.network.report(2, quiet.account, "quiet")
        // The busy server has at most its queue limit, and one batch at the receiver.
        try await eventually { test.monitor.messages.withLock { $0.byteCount } > 220_000 || test.events.count(.received) > 1 }
        #expect(test.monitor.messages.withLock { $0.byteCount } < 300_000)
        test.inbox.open()
        try await eventually { test.inbox.hashes.count == 201 }
        let ofBusy = test.inbox.messages.filter { $0.account == busy.account }.map(\.hash)
        #expect(ofBusy == (0..<200).map { PythonNetwork.hash("busy-\($0)") })
        #expect(test.events.count(.disconnected) == 0)
        try await test.stop()
    }

    // MARK: Maps

    @Test func mapChangeMovesAccounts() async throws {
        let swarms: [UInt64] = [0, 1 << 63]
        let test = try await MonitoredNetwork(swarms: swarms, listed: [0])
        let (moved, kept) = (try test.client(in: swarms[1], of: swarms), try test.client(in: swarms[0], of: swarms))
        for client in [moved, kept] { test.subscribe(client) }
        for client in [moved, kept] { try await test.asked(0, client) }
        try Data(test.network.nodes([0, 1]).utf8).write(to: URL(fileURLWithPath: test.nodesPath))
        test.monitor.reloadServers()
        try await test.asked(1, moved)
        try await test.received(1, moved, "moved")
        // Reports of the former server are no longer accepted.
        try test.network.report(0, moved.account, "late")
        try await test.dropped(.unsolicited)
        try await test.received(0, kept, "kept")
        #expect(test.network.entryCount(0, kept.account) == 1 && test.network.entryCount(1, kept.account) == 0)
        #expect(test.network.peer.said("greeted").count == 2)
        try await test.stop()
    }

    @Test func brokenNodesFileChangesNothingAndIsLogged() async throws {
        let test = try await MonitoredNetwork(swarms: [1])
        let client = try await test.monitoredClient()
        for (number, text) in ["[{", "{}", "[{}]", "[]"].enumerated() {
            try Data(text.utf8).write(to: URL(fileURLWithPath: test.nodesPath))
            test.monitor.reloadServers()
            try await eventually {
                test.log.lines.count { $0.hasPrefix("error failed to reload the nodes file; nothing changed") } == number + 1
            }
            try await test.received(0, client, "after-\(number)")
        }
        try await eventually { test.monitor.figures.knownServers == 1 }
        #expect(test.events.count(.disconnected) == 0)
        try await test.stop()
    }

    @Test func brokenNodesFileAtTheStartIsAnError() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/nodes.json"
        try Data("{".utf8).write(to: URL(fileURLWithPath: path))
        let monitor = SubscriptionMonitor(
            .init(source: .file(path)), sodium: try .load(), entries: StoredEntries(), receiver: Inbox(), logger: RecordedLog().logger
        ) { _ in }
        await #expect(throws: StorageServerFile.Failure(path: path, reason: "not JSON")) { try await monitor.run() }
    }

    @Test func oxendListsServersAndBlocksHaveItAskedAgain() async throws {
        let swarms: [UInt64] = [0, 1 << 63]
        let test = try await MonitoredNetwork(swarms: swarms, listed: [0], usesOxend: true, { $0.oxend.shortestInterval = .zero })
        let client = try test.client(in: swarms[1], of: swarms)
        test.subscribe(client)
        try await test.asked(0, client)
        #expect(test.monitor.figures.isOxendConnected == true)
        try await test.network.peer.says("blocks")
        // Unusable lists change nothing.
        for list in ["broken", "empty"] {
            let count = test.log.lines.count { $0.contains("swarm map unchanged") }
            try await test.network.tell("list \(list)")
            try await test.network.tell("block")
            try await eventually { test.log.lines.count { $0.contains("swarm map unchanged") } > count }
        }
        try await eventually { test.monitor.figures.knownServers == 1 }
        try await test.network.tell("list 0 1")
        try await test.network.tell("block")
        try await test.asked(1, client)
        try await test.received(1, client, "moved")
        try await test.stop()
    }

    @Test func oxendThatIsAwayChangesNothingUntilItIsBack() async throws {
        let test = try await MonitoredNetwork(swarms: [1], usesOxend: true)
        let client = try await test.monitoredClient()
        try await test.network.tell("down oxend")
        try await eventually { test.monitor.figures.isOxendConnected == false }
        try await test.received(0, client, "meanwhile")
        let listed = test.network.peer.said("listed").count
        try await test.network.tell("up oxend")
        try await eventually { test.monitor.figures.isOxendConnected == true && test.network.peer.said("listed").count > listed }
        #expect(test.log.lines.count { $0.contains("oxend disconnected") } == 1)
        try await test.stop()
    }
}
