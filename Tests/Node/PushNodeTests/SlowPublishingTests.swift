import Core
import NodeAPI
import NodeAssembly
import NodeMetrics
import RateLimits
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

/// More answers than the relay publishes.
@Suite struct SlowPublishingTests {
    private struct Served {
        var asked = 0
        var inTime = 0
        var share: Double { Double(inTime) / Double(max(1, asked)) }
    }

    /// Marks of the simulated answers.
    private enum Asker: Int {
        case attacker, stranger, known
    }

    private static let hasher = PayerHasher(key: .random())

    private static func item(_ asker: Asker, about registrant: Int, at milliseconds: Int) -> Publisher.Item {
        let payer = hasher.payer(.registrant, [UInt8(asker.rawValue)] + withUnsafeBytes(of: registrant, Array.init))
        let answer = Reply(
            kind: .query, expires: true, pubsubTopic: .statusDefault, times: nil, question: nil,
            charge: Charge(payer, asker == .known ? .known : .stranger), byteCount: 1_000
        ) { _ in [] }
        return Publisher.Item(
            answer: answer, publications: [[Confirmations.Message(hash: MessageHash(bytes: []), places: [asker.rawValue])]],
            addedAt: .milliseconds(milliseconds))
    }

    /// In virtual time: the relay takes 80 ms for each of 32 publications at a time, so 400 a second, and strangers cause 1,500 answers a second. Clients
    /// wait for 3 s, of which half a second is for the reply delay and for the way.
    ///
    /// - Parameter registrants: the number of registrants that the flood is about.
    @Test(arguments: [10, 100_000]) func floodOfAnswersLeavesTheKnownTheirs(registrants: Int) {
        var random = SeededGenerator(seed: 1)
        var buffer = AnswerBuffer(capacity: Publisher.capacity, byteCapacity: 64 << 20)
        var (known, strangers) = (Served(), Served())
        var (attackCount, dropped, published) = (0, 0, 0)
        var workers = [Int](repeating: 0, count: 32)
        for now in 0..<20_000 {
            func add(_ asker: Asker, about registrant: Int) {
                dropped += buffer.add(Self.item(asker, about: registrant, at: now), due: nil, at: .milliseconds(now))
            }
            for _ in 0..<(now.isMultiple(of: 2) ? 1 : 2) {
                add(.attacker, about: attackCount % registrants)
                attackCount += 1
            }
            if Int.random(in: 0..<20, using: &random) == 0 {
                known.asked += 1
                add(.known, about: now)
            }
            if Int.random(in: 0..<50, using: &random) == 0 {
                strangers.asked += 1
                add(.stranger, about: now)
            }
            for worker in workers.indices where workers[worker] <= now {
                guard let item = buffer.take() else { break }
                guard .milliseconds(now) - item.addedAt < Publisher.answerLifetime else { continue }
                workers[worker] = now + Int.random(in: 40...120, using: &random)
                published += 1
                guard .milliseconds(workers[worker]) - item.addedAt <= .milliseconds(2_500) else { continue }
                switch item.publications.first?.first?.places.first.flatMap(Asker.init) {
                case .known: known.inTime += 1
                case .stranger: strangers.inTime += 1
                case .attacker, nil: break
                }
            }
        }
        #expect(dropped > 5_000 && published < 9_000)
        // Apart from those of the last moment.
        #expect(known.share >= 0.99, "\(known.share)")
        // Strangers have a share each if they are few, else that of all of them.
        let fairShare = registrants == 10 ? 1 : (Double(published) / 20 - 50) / 1_520
        #expect(strangers.share >= 0.7 * fairShare, "\(strangers.share) of \(fairShare)")
    }

    /// The client of a query made a key for its answer, and has asked again meanwhile. That of a registration would do so much later, and be told of a
    /// version mismatch.
    @Test func answersThatCameTooLateAreNotSealedExceptThoseToRegistrations() async {
        let (relay, counters) = (FeedRelay(), Counters(NodeAssembly.metrics))
        let publisher = Publisher(
            relay: relay, seen: SeenMessages(), handled: HandledMessages(), counters: counters, logger: quiet, answerLifetime: .zero)
        let recipient = PrivateKey.generate().publicKey
        publisher.publish(.test([1], to: recipient, kind: .queryResponse))
        publisher.publish(.test([2], to: recipient, kind: .response))
        publisher.publish(.test([3], to: recipient, kind: .registrationResponse))
        publisher.finish()
        await publisher.run()
        #expect(counters.snapshot == [.answerPublished: 1, .answerConfirmed: 1, .answerLost: 2])
        #expect(relay.published.count == 1)
    }
}
