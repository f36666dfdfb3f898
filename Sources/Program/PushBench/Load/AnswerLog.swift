import NIOCore
import Core
import Synchronization
import Waku

/// Answers as received by the clients, and the latency of each.
final class AnswerLog: Sendable {
    private struct State {
        var matcher = AnswerMatcher<ContentTopic>()
        var latencies = LatencyHistogram()
        var lastTime: UInt64 = 0
    }

    private let state = Mutex(State())

    var latencies: LatencyHistogram { state.withLock { $0.latencies } }
    var waitingCount: Int { state.withLock { $0.matcher.waitingCount } }
    var lastTime: UInt64 { state.withLock { $0.lastTime } }

    func asked(_ topic: ContentTopic, at time: UInt64) {
        state.withLock { $0.matcher.asked(topic, at: time) }
    }

    func note(_ messages: [ReceivedMessage]) {
        let time = Clock.uptime()
        state.withLock { state in
            for received in messages {
                guard let latency = state.matcher.answered(received.message.contentTopic, at: time) else { continue }
                state.latencies.record(nanoseconds: latency)
                state.lastTime = time
            }
        }
    }

    /// Waits for all answers. Returns false if none came within the timeout.
    func waitForAll(timeout: Duration = .seconds(20)) async throws -> Bool {
        var last = waitingCount
        var deadline = ContinuousClock.now + timeout
        while true {
            let now = waitingCount
            if now == 0 { return true }
            if now != last { (last, deadline) = (now, .now + timeout) }
            guard ContinuousClock.now < deadline else { return false }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}

/// Posts to gorush, matched by the number in the device token, and the latency of each.
final class GorushLog: Sendable {
    private struct State {
        var matcher = AnswerMatcher<Int>()
        var latencies = LatencyHistogram()
    }

    private static let mark = Array("bench-device-".utf8)
    private let state = Mutex(State())

    /// The device token of the client with this number.
    @Sendable static func token(_ number: Int) -> DeviceToken {
        DeviceToken("bench-device-\(number).")
    }

    var latencies: LatencyHistogram { state.withLock { $0.latencies } }

    func asked(_ number: Int, at time: UInt64) {
        state.withLock { $0.matcher.asked(number, at: time) }
    }

    @Sendable func note(_ body: ByteBuffer) {
        let time = Clock.uptime()
        let numbers = Self.numbers(in: Array(body.readableBytesView))
        state.withLock { state in
            for number in numbers {
                if let latency = state.matcher.answered(number, at: time) { state.latencies.record(nanoseconds: latency) }
            }
        }
    }

    /// The numbers of all tokens in a body.
    static func numbers(in body: [UInt8]) -> [Int] {
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
