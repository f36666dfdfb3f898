import NodeAPI
import Testing
import Waku

@testable import PushNode

@Suite("Recently seen messages")
struct SeenMessagesTests {
    private func hash(_ number: Int) -> MessageHash {
        MessageHash(bytes: withUnsafeBytes(of: number, Array.init))
    }

    @Test("A message is new only once")
    func once() {
        let seen = SeenMessages(capacity: 10)
        #expect(seen.insert(hash(1)))
        #expect(!seen.insert(hash(1)))
        #expect(seen.insert(hash(2)))
    }

    @Test("At least the capacity of recent messages is known, and at most twice as many are kept")
    func bounded() {
        let seen = SeenMessages(capacity: 10)
        for number in 0..<100 { #expect(seen.insert(hash(number))) }
        for number in 90..<100 { #expect(!seen.insert(hash(number))) }
        #expect(seen.insert(hash(0)))
    }
}

@Suite("Addresses to listen on")
struct SocketAddressTests {
    @Test("Host and port", arguments: [("127.0.0.1:9090", "127.0.0.1", 9090), ("[::1]:80", "::1", 80), ("localhost:0", "localhost", 0)])
    func parses(text: String, host: String, port: Int) {
        #expect(SocketAddress(parsing: text) == SocketAddress(host: host, port: port))
    }

    @Test("Invalid addresses are rejected", arguments: ["", "9090", ":9090", "host:", "host:65536", "host:-1", "::1:80", "host:port"])
    func refuses(text: String) {
        #expect(SocketAddress(parsing: text) == nil)
    }
}
