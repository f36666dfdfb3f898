import Core
import NodeMetrics
import Storage
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushBench

@Suite("The measurements of the benchmarks")
struct MeasuringTests {
    @Test("Answers go to the oldest question on their topic")
    func matching() {
        var matcher = AnswerMatcher<Int>()
        matcher.asked(1, at: 100)
        matcher.asked(2, at: 110)
        matcher.asked(1, at: 120)
        #expect(matcher.answered(3, at: 130) == nil)
        #expect(matcher.answered(1, at: 150) == 50)
        #expect(matcher.answered(1, at: 160) == 40)
        #expect(matcher.answered(1, at: 170) == nil)
        #expect(matcher.waitingCount == 1)
        #expect(matcher.answered(2, at: 110) == 0)
        #expect(matcher.waitingCount == 0)
    }

    @Test("The devices of a post are identified by the numbers in their tokens")
    func tokens() {
        func numbers(_ text: String) -> [Int] { GorushLog.numbers(in: Array(text.utf8)) }
        let tokens = [7, 12, 0].map { GorushLog.token($0).revealed }
        #expect(numbers(#"{"notifications":[{"tokens":["\#(tokens[0])"]},{"tokens":["\#(tokens[1])","\#(tokens[2])"]}]}"#) == [7, 12, 0])
        #expect(numbers("") == [])
        #expect(numbers("bench-device-") == [])
        #expect(numbers("bench-device-x bench-devicebench-device-4.") == [4])
    }

    @Test("Work on several threads is counted on all of them")
    func counts() async throws {
        let total = Atomic<Int>(0)
        let run = try await CoreRun.measure(cores: 3, for: .milliseconds(5)) {
            CoreOperation {
                total.add(2, ordering: .relaxed)
                return 2
            }
        }
        // Each thread does one unmeasured.
        #expect(run.count == total.load(ordering: .relaxed) - 6)
        #expect(run.wall >= .milliseconds(5))
        #expect(run.rate > 0)
        #expect(run.cores == 3)
    }

    @Test("A measurement ends when one of its threads fails", arguments: [true, false])
    func failure(isFirst: Bool) async {
        let made = Atomic<Int>(0)
        await #expect(throws: BenchError.self) {
            try await CoreRun.measure(cores: 2, for: .milliseconds(1)) {
                if isFirst, made.add(1, ordering: .relaxed).newValue == 1 { throw BenchError.disk }
                return CoreOperation { throw BenchError.disk }
            }
        }
    }

    @Test("Each primitive can be measured", arguments: Primitive.allCases)
    func primitive(_ primitive: Primitive) async throws {
        let folder = try TemporaryFolder()
        let meter = PrimitiveMeter(folder: folder.path, slice: .milliseconds(1))
        // Fills a database, which the others do not need.
        if primitive.isOfStore || primitive == .insert100 { try meter.prepare() }
        let run = try await meter.measure(primitive, cores: 2)
        #expect(run.count > 0)
        #expect(run.cpuMicroseconds > 0)
    }

    @Test("Messages are made in order, whichever core makes them")
    func order() async {
        #expect(await makeInParallel(1000, cores: 4) { $0 * 2 } == (0..<1000).map { $0 * 2 })
        #expect(await makeInParallel(0, cores: 2) { $0 } == [])
    }

    @Test func everyClientHasItsTurnInRandomOrder() async {
        let maker = await QuestionMaker(.update, identity: .generate(), cores: 2, stored: 200)
        let first = (0..<200).map(maker.client)
        #expect(Set(first) == Set(0..<200) && first != Array(0..<200))
        #expect((200..<400).map(maker.client) == first)
    }

    @Test func otherRegistrationsAreStoredToo() async throws {
        let folder = try TemporaryFolder()
        let identity = PrivateKey.generate()
        let clients = [BenchClient(deviceToken: DeviceToken("device"))]
        let byteCount = try await BenchNode.seed(clients, strangers: 20, identity: identity, folder: folder.path)
        #expect((21 * 500..<21 * 1000).contains(byteCount))
        #expect(try BareDatabase.byteCount(path: DataFolder.databasePath(in: folder.path)) > byteCount)
    }

    @Test("Requests that were made an hour ahead are answered")
    func madeAhead() async throws {
        let folder = try TemporaryFolder()
        let identity = PrivateKey.generate()
        let maker = await QuestionMaker(.request, identity: identity, cores: 2, stored: 64)
        try await BenchNode.seed(maker.clients, identity: identity, folder: folder.path)
        let questions = await maker.make(64, after: 0).map { question in
            var message = question.message.message
            message.timestamp = message.timestamp + .seconds(-3600)
            return Question(
                message: ReceivedMessage(message: message, pubsubTopic: question.message.pubsubTopic), answerTopic: question.answerTopic)
        }
        let unanswered = try await BenchNode.running(
            BenchNode.configuration(identity, folder.path), gorush: PostingStandIn(latency: .zero)
        ) { node in
            let speed = try await FullSpeed.measure(Array(questions[..<32]), relay: node.relay, batch: 8)
            let loop = try await OpenLoop.measure(Array(questions[32...]), rate: 1000, relay: node.relay)
            return [speed.unanswered, loop.unanswered]
        }
        #expect(unanswered == [0, 0])
    }

    @Test("If messages went unanswered, the node's counters show where")
    func explained() {
        let counters = Counters([.messages])
        counters.add(.droppedOldRequest, 3)
        var result = BenchResult(name: "request")
        result.unanswered = 0
        result.explainUnanswered(by: counters)
        #expect(result.note == nil)
        result.unanswered = 3
        result.explainUnanswered(by: counters)
        #expect(result.note == "the node counted: dropped: request too old 3")
    }

    @Test("Each kind of message is answered, once for each", arguments: MessageBench.Kind.allCases)
    func answered(kind: MessageBench.Kind) async throws {
        let folder = try TemporaryFolder()
        var settings = BenchSettings(seconds: 0.01, folder: folder.path)
        settings.rounds = 1
        settings.storedCount = 200
        let results = try await MessageBench(kind: kind, settings: settings).run()
        let result = try #require(results.first)
        #expect(result.name == kind.rawValue)
        // 32 at least at full speed, and again at half of it.
        #expect(result.messages ?? 0 >= 64)
        #expect(result.cpuMicrosecondsAtQuarter ?? 0 > 0 && result.cpuMicrosecondsAtHalf ?? 0 > 0)
        #expect(result.ratioToFloor ?? 0 > 0 && result.limitMicroseconds ?? 0 < result.floorMicroseconds ?? 0)
        #expect(result.unanswered == 0)
        #expect(result.latencies?.count ?? 0 >= 32)
    }
}
