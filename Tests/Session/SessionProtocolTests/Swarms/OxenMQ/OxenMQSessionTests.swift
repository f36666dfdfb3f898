import TestSupport
import Testing

@testable import SessionProtocol

@Suite struct OxenMQSessionTests {
    private func parts(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }

    private func ready() -> OxenMQSession {
        var session = OxenMQSession()
        #expect(session.receive(parts("HELLO")) == .hello)
        return session
    }

    @Test func connectionBeginsWithHiAndHello() {
        #expect(OxenMQSession.greeting == parts("HI"))
        var session = OxenMQSession()
        #expect(!session.isReady)
        #expect(session.receive(parts("HELLO")) == .hello)
        #expect(session.isReady)
        #expect(session.receive(parts("HELLO")) == .ignored(byteCount: 5))
    }

    @Test func nothingCountsBeforeHello() {
        var session = OxenMQSession()
        #expect(session.receive(parts("REPLY", "tag", "x")) == .ignored(byteCount: 9))
        #expect(session.receive(parts("notify.message", "x")) == .ignored(byteCount: 15))
        #expect(session.receive(parts("HI")) == .ignored(byteCount: 2))
        #expect(!session.isReady)
    }

    @Test func requestsHaveCommandTagAndBody() {
        #expect(OxenMQSession.request("monitor.messages", tag: [1], body: [2]) == [Array("monitor.messages".utf8), [1], [2]])
    }

    @Test func repliesNameTheirTag() {
        var session = ready()
        #expect(session.receive(parts("REPLY", "tag", "a", "b")) == .reply(tag: Array("tag".utf8), parts: parts("a", "b")))
        #expect(session.receive(parts("REPLY", "tag")) == .reply(tag: Array("tag".utf8), parts: []))
        #expect(session.receive(parts("REPLY")) == .ignored(byteCount: 5))
    }

    @Test func commandsHaveParts() {
        var session = ready()
        #expect(session.receive(parts("notify.message", "a")) == .command("notify.message", parts: parts("a")))
        #expect(session.receive(parts("notify.block", "5", "hash")) == .command("notify.block", parts: parts("5", "hash")))
    }

    @Test(arguments: OxenMQSession.Refusal.allCases)
    func errorsNameTheRequest(refusal: OxenMQSession.Refusal) {
        var session = ready()
        let size = refusal.rawValue.utf8.count
        let named = session.receive(parts(refusal.rawValue, "REPLY", "tag"))
        #expect(named == .refused(refusal, tag: Array("tag".utf8), byteCount: size + 8))
        #expect(session.receive(parts(refusal.rawValue, "monitor.messages")) == .refused(refusal, tag: nil, byteCount: size + 16))
        #expect(session.receive(parts(refusal.rawValue)) == .refused(refusal, tag: nil, byteCount: size))
    }

    @Test func byeEndsTheConnection() {
        for var session in [OxenMQSession(), ready()] {
            #expect(session.receive(parts("BYE")) == .closed(.bye))
            #expect(session.receive(parts("HELLO")) == .ignored(byteCount: 5))
            #expect(session.receive(parts("notify.message", "x")) == .ignored(byteCount: 15))
            #expect(!session.isReady)
        }
    }

    @Test func messagesOfNoProtocolAreIgnored() {
        var session = ready()
        for odd in [[], [[]], [[0xFF, 0xFE]], [[UInt8](repeating: 0x61, count: 65)], Array(repeating: [], count: 16)] as [[[UInt8]]] {
            #expect(session.receive(odd) == .ignored(byteCount: odd.joined().count))
        }
        #expect(session.isReady)
    }

    /// A server could send millions of empty parts.
    @Test func messageOfTooManyPartsEndsTheConnection() {
        var session = ready()
        #expect(session.receive(Array(repeating: [0x61], count: 17)) == .closed(.tooManyParts))
        #expect(!session.isReady)
    }

    @Test func mutatedMessagesNeverTrap() {
        var random = SeededGenerator(seed: 9)
        var session = ready()
        let seeds = [parts("REPLY", "tag", "a"), parts("BYEE"), parts("FORBIDDEN", "REPLY", "tag"), parts("notify.message", "x")]
        for _ in 0..<5000 {
            var message = random.pick(seeds)
            for index in message.indices where Bool.random(using: &random) { message[index] = random.damaged(message[index]) }
            if Bool.random(using: &random), !message.isEmpty { message.remove(at: Int.random(in: message.indices, using: &random)) }
            if session.receive(message) == .closed(.bye) { session = ready() }
        }
    }

    @Test func addressesAreOfThreeForms() {
        let key = String(repeating: "ab", count: 32)
        #expect(OxenAddress("ipc:///run/oxend/oxend.sock") == OxenAddress(endpoint: "ipc:///run/oxend/oxend.sock", serverKey: nil))
        #expect(OxenAddress("tcp://127.0.0.1:22023") == OxenAddress(endpoint: "tcp://127.0.0.1:22023", serverKey: nil))
        #expect(OxenAddress("tcp://[::1]:22023")?.endpoint == "tcp://[::1]:22023")
        #expect(
            OxenAddress("curve://oxend.example:22023/\(key)")
                == OxenAddress(endpoint: "tcp://oxend.example:22023", serverKey: [UInt8](repeating: 0xAB, count: 32)))
        for wrong in [
            "", "ipc://", "ipc://relative", "ipc:///", "ipc://@abstract", "tcp://", "tcp://host", "tcp://host:0", "tcp://host:65536",
            "tcp://:22", "tcp://*:22", "tcp://eth0;host:22", "tcp://a/b:22", "curve://host:22", "curve://host:22/ab",
            "curve://host:22/\(key)/",
            "http://host:22", "tcp://host:22 ", "inproc://x", "tcp://[]:1",
        ] { #expect(OxenAddress(wrong) == nil, "\(wrong)") }
    }
}
