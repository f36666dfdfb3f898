import NIOCore
import Core
import Synchronization
import Waku

/// Awaited events, such as answers by their topics, and the latency of each.
final class LatencyLog<Key: Hashable & Sendable>: Sendable {
    private struct State {
        var matcher = AnswerMatcher<Key>()
        var latencies = LatencyHistogram()
        var lastTime: UInt64 = 0
    }

    private let state = Mutex(State())

    var latencies: LatencyHistogram { state.withLock { $0.latencies } }
    var waitingCount: Int { state.withLock { $0.matcher.waitingCount } }
    var lastTime: UInt64 { state.withLock { $0.lastTime } }

    func asked(_ key: Key, at time: UInt64) {
        state.withLock { $0.matcher.asked(key, at: time) }
    }

    func answered(_ keys: some Sequence<Key>, at time: UInt64) {
        state.withLock { state in
            for key in keys {
                guard let latency = state.matcher.answered(key, at: time) else { continue }
                state.latencies.record(nanoseconds: latency)
                state.lastTime = time
            }
        }
    }

    /// Waits for all answers. Returns false if none came within 20 s.
    func waitForAll() async throws -> Bool { try await waitForCount(0) { -waitingCount } }
}

/// Answers as received by the clients.
typealias AnswerLog = LatencyLog<ContentTopic>

extension AnswerLog {
    func note(_ messages: [ReceivedMessage]) { answered(messages.lazy.map(\.message.contentTopic), at: Clock.uptime()) }
}

/// Posts to gorush, by the number in the device token.
typealias GorushLog = LatencyLog<Int>

extension GorushLog {
    private static var mark: [UInt8] { Array("bench-device-".utf8) }

    /// The device token of the client with this number.
    @Sendable static func token(_ number: Int) -> DeviceToken {
        DeviceToken("bench-device-\(number).")
    }

    @Sendable func note(_ body: ByteBuffer) {
        let time = Clock.uptime()
        answered(Self.numbers(in: Array(body.readableBytesView)), at: time)
    }

    /// The numbers of all tokens in a body.
    static func numbers(in body: [UInt8]) -> [Int] {
        let mark = mark
        var numbers: [Int] = []
        var index = 0
        while index + mark.count < body.count {
            guard body[index..<index + mark.count].elementsEqual(mark) else {
                index += 1
                continue
            }
            let digits = body[(index + mark.count)...].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            if let number = Int(String(decoding: digits, as: UTF8.self)) { numbers.append(number) }
            index = digits.endIndex
        }
        return numbers
    }
}
