import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOSupport
import Synchronization
import Testing

@Suite struct AcceptPauseHandlerTests {
    /// Counts the reads that reach the socket.
    private final class Reads: ChannelOutboundHandler {
        typealias OutboundIn = Never
        var count = 0

        func read(context: ChannelHandlerContext) {
            count += 1
            context.read()
        }
    }

    /// Records the level of each log line.
    private final class Levels: LogHandler, Sendable {
        private let levels = Mutex<[Logger.Level]>([])
        var all: [Logger.Level] { levels.withLock { $0 } }

        var logLevel: Logger.Level {
            get { .trace }
            set {}
        }
        var metadata: Logger.Metadata {
            get { [:] }
            set {}
        }
        subscript(metadataKey _: String) -> Logger.Metadata.Value? {
            get { nil }
            set {}
        }

        func log(event: LogEvent) {
            levels.withLock { $0.append(event.level) }
        }
    }

    private let levels: Levels
    private let loop = EmbeddedEventLoop()
    private let reads = Reads()
    private let channel: EmbeddedChannel

    init() throws {
        let levels = Levels()
        self.levels = levels
        let handler = AcceptPauseHandler(
            pause: .milliseconds(250), message: "connections not accepted", logger: Logger(label: "test") { _ in levels })
        channel = EmbeddedChannel(handlers: [reads, handler], loop: loop)
    }

    private var readsByItself: Bool? {
        channel.options.compactMap { $0.option is ChannelOptions.Types.AutoReadOption ? $0.value as? Bool : nil }.last
    }

    private func fail(_ code: CInt) {
        channel.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept"))
    }

    @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func exhaustionPausesAccepting(code: CInt) {
        fail(code)
        #expect(readsByItself == false)
        channel.pipeline.read()
        #expect(reads.count == 0)
        loop.advanceTime(by: .milliseconds(249))
        #expect(readsByItself == false)
        loop.advanceTime(by: .milliseconds(1))
        #expect(readsByItself == true)
        channel.pipeline.read()
        #expect(reads.count == 1)
        fail(code)
        #expect(readsByItself == false)
    }

    @Test func warnsOnceAMinuteWhilePausesContinue() {
        for _ in 0..<481 {
            fail(EMFILE)
            loop.advanceTime(by: .milliseconds(250))
        }
        let warnings = levels.all.indices.filter { levels.all[$0] == .warning }
        #expect(warnings == [0, 240, 480])
    }

    @Test func warnsAgainInALaterIncident() {
        for _ in 0..<2 {
            fail(EMFILE)
            loop.advanceTime(by: .milliseconds(250))
        }
        loop.advanceTime(by: .minutes(10))
        fail(EMFILE)
        #expect(levels.all == [.warning, .debug, .warning])
    }

    /// These errors say nothing about the next connection.
    @Test func otherErrorsArePassedOn() {
        fail(ECONNABORTED)
        #expect(readsByItself == nil)
        #expect(throws: IOError.self) { try channel.throwIfErrorCaught() }
    }
}
