import Core
import Dispatch
import SessionProtocol
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import SessionServer

@Suite("Session: HTTP requests under attack") struct RequestTurnsTests {
    private final class Connection: Sendable {}

    private let attackers = (0..<200).map { _ in Connection() }
    private let honest = Connection()

    private func client(_ address: String, _ connection: Connection) throws -> RequestSender {
        RequestSender(network: SenderNetwork(IPAddress(address)), connection: ObjectIdentifier(connection))
    }

    @Test func networksAreTheBlocksOfOneCustomer() throws {
        func network(_ address: String) -> SenderNetwork { SenderNetwork(IPAddress(address)) }
        #expect(network("192.0.2.1") == network("192.0.2.200"))
        #expect(network("192.0.2.1") != network("192.0.3.1"))
        #expect(network("::ffff:192.0.2.9") == network("192.0.2.1"))
        #expect(network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff::"))
        #expect(network("2001:db8:1:2::1") != network("2001:db8:1:3::1"))
        #expect(SenderNetwork(nil).block == nil)
    }

    /// 200 connections with large arrays wait. A small request of another network waits for one of them, one of the same network for a turn of each.
    @Test(arguments: ["198.51.100.1", "192.0.2.1"])
    func smallRequestsDoNotWaitForLargeOnes(address: String) throws {
        var turns = RequestTurns<Int>()
        for (number, connection) in attackers.enumerated() {
            #expect(turns.append(number, from: try client("192.0.2.7", connection), byteCount: 100_000, deadline: .now))
        }
        #expect(turns.append(-1, from: try client(address, honest), byteCount: 600, deadline: .now))
        let first = (0..<4).compactMap { _ in turns.popFirst(at: .now)?.request }
        #expect(first.contains(-1))
    }

    @Test func aNetworkFillsOnlyItsShare() throws {
        var turns = RequestTurns<Int>(limits: .init(networkCount: 100, totalCount: 150))
        let answers = try attackers.map { turns.append(0, from: try client("192.0.2.7", $0), byteCount: 600, deadline: .now) }
        #expect(answers.count(where: \.self) == 100)
        #expect(turns.append(1, from: try client("198.51.100.1", honest), byteCount: 600, deadline: .now))
    }

    @Test func requestsBeyondANetworksShareAreRefusedAtOnce() throws {
        let workers = FairWorkers(threadCount: 1, timeout: .seconds(3600))
        workers.start()
        let release = DispatchSemaphore(value: 0)
        let refused = Mutex(0)
        workers.submit(for: try client("192.0.2.7", honest), byteCount: 600) { _ in release.wait() }
        for connection in attackers + attackers + attackers {
            workers.submit(for: try client("192.0.2.7", connection), byteCount: 600) { turn in
                if case .refused = turn { refused.withLock { $0 += 1 } }
            }
        }
        // 600 for 512 places; the first one has left its place, unless its thread has not begun.
        #expect([88, 89].contains(refused.withLock(\.self)))
        release.signal()
        workers.stop()
    }

    @Test func aRequestPastItsDeadlineIsNotBegun() throws {
        var turns = RequestTurns<Int>()
        let now = Instant.now
        _ = turns.append(1, from: try client("192.0.2.7", honest), byteCount: 600, deadline: now + .seconds(10))
        _ = turns.append(2, from: try client("192.0.2.7", honest), byteCount: 600, deadline: now + .seconds(10))
        #expect(turns.popFirst(at: now + .seconds(9))?.isLate == false)
        #expect(turns.popFirst(at: now + .seconds(10))?.isLate == true)
        #expect(turns.popFirst(at: now) == nil && turns.count == 0)
    }

    /// While nodes of a cluster have other VAPID keys, another node may accept what this one refuses: the client tries again.
    @Test(arguments: [false, true])
    func aSubscriptionForAVAPIDKeyOfAnotherNodeIsRefusedForNow(isChanging: Bool) throws {
        let account = try SessionAccount.sessionID()
        let receiver = WebPushReceiver()
        let keys = try #require(WebPushKeys(publicKey: receiver.key.publicKey, secret: receiver.secret))
        let named = P256PrivateKey.generate().publicKey
        let subscription = try #require(PushSubscription(endpoint: "https://push.example/a", keys: keys, vapidKey: named))
        let device = SessionDevice(.webPush, token: String(decoding: subscription.json, as: UTF8.self))
        let body = Array(account.json(account.subscription(device)).utf8)
        func refusal(_ services: Set<PushService>, _ own: [P256PublicKey]) throws -> RequestError? {
            let preparation = RequestPreparation(
                verifier: SignatureVerifier(sodium: try Sodium.load()), services: services, webPushKeys: own,
                isWebPushChanging: { isChanging })
            guard case .failure(let error)? = preparation.prepare(body, isSubscription: true, at: .now).entries.first else { return nil }
            return error
        }
        #expect(try refusal([.webPush], [named]) == nil)
        for error in [try refusal([.webPush], [P256PrivateKey.generate().publicKey]), try refusal([.firebase], [])] {
            #expect(try #require(error).retryAfter == (isChanging ? 60 : nil))
            #expect((error == .webPushChanging) == isChanging)
        }
    }

    @Test(arguments: [false, true])
    func webPushSubscriptionsAreRefusedWhileANodeDoesNotKnowThem(isUnknown: Bool) throws {
        let account = try SessionAccount.sessionID()
        let receiver = WebPushReceiver()
        let keys = try #require(WebPushKeys(publicKey: receiver.key.publicKey, secret: receiver.secret))
        let subscription = try #require(PushSubscription(endpoint: "https://push.example/a", keys: keys))
        let preparation = RequestPreparation(
            verifier: SignatureVerifier(sodium: try Sodium.load()), services: [.webPush, .firebase],
            webPushKeys: [P256PrivateKey.generate().publicKey], isWebPushUnknown: { isUnknown })
        func refusal(of device: SessionDevice) throws -> RequestError? {
            let body = Array(account.json(account.subscription(device)).utf8)
            guard case .failure(let error)? = preparation.prepare(body, isSubscription: true, at: .now).entries.first else { return nil }
            return error
        }
        let webPush = SessionDevice(.webPush, token: String(decoding: subscription.json, as: UTF8.self))
        #expect(try refusal(of: webPush) == (isUnknown ? .webPushUnknown : nil))
        #expect(try refusal(of: SessionDevice()) == nil)
    }

    @Test func anArrayIsGivenUpAfterItsThirdInvalidSignature() throws {
        let account = try SessionAccount.sessionID()
        let preparation = RequestPreparation(
            verifier: SignatureVerifier(sodium: try Sodium.load()), services: Set(PushService.allCases))
        let good = account.json(account.unsubscription(SessionDevice()))
        let signedAt = Int64.now - 5
        let forged = account.json(account.unsubscription(SessionDevice(), at: signedAt)).replacing("\(signedAt)", with: "\(signedAt - 1)")
        let body =
            "[" + ([good, forged, "{}", forged, good, forged, good] + Array(repeating: forged, count: 200)).joined(separator: ",") + "]"
        let prepared = preparation.prepare(Array(body.utf8), isSubscription: false, at: .now)
        #expect(prepared.entries.count == 207)
        #expect(prepared.requests.count == 2)
        let errors = prepared.entries.map { entry -> RequestError? in
            if case .failure(let error) = entry { error } else { nil }
        }
        #expect(errors[5]?.message == "signature: not valid")
        #expect(errors[6...].allSatisfy { $0 == .notChecked })
        #expect(errors[6]?.code == .error && errors[6]?.retryAfter == nil)
    }

    /// Three seconds of virtual time: two threads, 200 connections that send their next array as soon as they are answered, honest requests of the same
    /// and of another network. The cost of an array is that of parsing and three signatures.
    @Test(arguments: ["198.51.100.1", "192.0.2.1"])
    func honestRequestsAreAnsweredWhileArraysCome(address: String) throws {
        var turns = RequestTurns<(sender: Int, sent: Instant)>()
        let start = Instant.now
        var threads = [start, start]
        for (number, connection) in attackers.enumerated() {
            _ = turns.append((number, start), from: try client("192.0.2.7", connection), byteCount: 60_000, deadline: start + .seconds(10))
        }
        var (nextHonest, times): (Instant, [Duration]) = (start, [])
        while let thread = threads.indices.min(by: { threads[$0] < threads[$1] }), threads[thread] < start + .seconds(3) {
            let now = threads[thread]
            if nextHonest <= now {
                _ = turns.append((-1, now), from: try client(address, honest), byteCount: 600, deadline: now + .seconds(10))
                nextHonest = now + .milliseconds(100)
            }
            guard let (request, isLate) = turns.popFirst(at: now) else { break }
            #expect(!isLate)
            if request.sender < 0 {
                threads[thread] = now + .microseconds(300)
                times.append(threads[thread] - request.sent)
            } else {
                threads[thread] = now + .milliseconds(3)
                _ = turns.append(
                    (request.sender, now), from: try client("192.0.2.7", attackers[request.sender]), byteCount: 60_000,
                    deadline: now + .seconds(10))
            }
        }
        #expect(times.count >= 25)
        #expect(times.allSatisfy { $0 < .seconds(1) })
    }
}
