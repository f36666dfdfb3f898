import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOSupport
import TestSupport
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

    private let log = RecordedLog()
    private let loop = EmbeddedEventLoop()
    private let reads = Reads()
    private let channel: EmbeddedChannel

    init() throws {
        let handler = AcceptPauseHandler(pause: .milliseconds(250), message: "connections not accepted", logger: log.logger)
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
        let warnings = log.all.indices.filter { log.all[$0].level == .warning }
        #expect(warnings == [0, 240, 480])
    }

    @Test func warnsAgainInALaterIncident() {
        for _ in 0..<2 {
            fail(EMFILE)
            loop.advanceTime(by: .milliseconds(250))
        }
        loop.advanceTime(by: .minutes(10))
        fail(EMFILE)
        #expect(log.all.map(\.level) == [.warning, .debug, .warning])
    }

    /// These errors say nothing about the next connection.
    @Test func otherErrorsArePassedOn() {
        fail(ECONNABORTED)
        #expect(readsByItself == nil)
        #expect(throws: IOError.self) { try channel.throwIfErrorCaught() }
    }
}
