import Foundation
import LibP2P
import Synchronization
import Waku
import WakuP2P
import WakuPushCommands

/// The other process of ``RelayBench``: a node that counts messages and prints a line of JSON at the end of each run.
final class RelayBenchSink: Sendable {
    /// The header of a payload, before the padding.
    ///
    ///     run(1) ‖ is over(1) ‖ message count(8) ‖ uptime in nanoseconds(8), all big-endian
    struct Mark {
        static let byteCount = 18
        let run: UInt8
        let isOver: Bool
        let count: UInt64
        let sentAt: UInt64

        init(run: UInt8, isOver: Bool, count: UInt64, sentAt: UInt64 = Clock.uptime()) {
            (self.run, self.isOver, self.count, self.sentAt) = (run, isOver, count, sentAt)
        }

        init?(_ payload: [UInt8]) {
            guard payload.count >= Self.byteCount else { return nil }
            func number(_ start: Int) -> UInt64 { payload[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
            self.init(run: payload[0], isOver: payload[1] != 0, count: number(2), sentAt: number(10))
        }

        var bytes: [UInt8] {
            func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
            return [run, isOver ? 1 : 0] + bytes(count) + bytes(sentAt)
        }
    }

    /// The report of a run.
    struct Report: Codable {
        let run: UInt8
        let count: Int
        let lastAt: UInt64
        /// CPU time of this process, from the first message to the last.
        let processorNanoseconds: UInt64
        let residentBytes: Int
        /// In nanoseconds.
        let latencies: [UInt64]
    }

    private struct Run {
        let number: UInt8
        var count = 0
        var lastAt: UInt64 = 0
        var processorStart: UInt64 = 0
        var latencies: [UInt64] = []
        var isReported = false
    }

    private let current = Mutex<Run?>(nil)

    /// Listens on loopback until it is terminated, and prints its address.
    func run() async throws {
        let configuration = P2PRelay.Configuration(key: .generate(), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")])
        let relay = P2PRelay(configuration: configuration, logger: .quiet)
        try await relay.listen()
        Output.line(relay.listenAddresses.first?.description ?? "")
        await relay.run { self.take($0) }
    }

    private func take(_ messages: [ReceivedMessage]) {
        let now = Clock.uptime()
        var report: Report?
        current.withLock { run in
            for received in messages {
                guard let mark = Mark(received.message.payload) else { continue }
                if run?.number != mark.run { run = Run(number: mark.run, processorStart: Clock.process()) }
                if !mark.isOver {
                    run?.count += 1
                    run?.lastAt = now
                    run?.latencies.append(now - mark.sentAt)
                } else if let over = run, !over.isReported {
                    run?.isReported = true
                    report = Report(
                        run: over.number, count: over.count, lastAt: over.lastAt,
                        processorNanoseconds: Clock.process() - over.processorStart, residentBytes: ProcessMemory.residentBytes() ?? 0,
                        latencies: over.latencies)
                }
            }
        }
        if let report, let line = try? JSONEncoder().encode(report) { Output.line(String(decoding: line, as: UTF8.self)) }
    }
}
