import Foundation
@testable import WakuPushCommands
import TestSupport
import Testing

struct NotifySocketTests {
    @Test func aPath() throws {
        let folder = try TemporaryFolder()
        let listener = try DatagramListener(folder.path + "/notify")
        let socket = try #require(NotifySocket(listener.address))
        #expect(socket.send("READY=1\nSTATUS=Ready"))
        #expect(socket.send("WATCHDOG=1"))
        #expect(listener.next() == "READY=1\nSTATUS=Ready")
        #expect(listener.next() == "WATCHDOG=1")
        #expect(listener.next() == nil)
    }

    @Test func anAbstractName() throws {
        let listener = try DatagramListener("@waku-push-test/" + UUID().uuidString)
        #expect(try #require(NotifySocket(listener.address)).send("READY=1"))
        #expect(listener.next() == "READY=1")
    }

    @Test func nobodyListens() throws {
        let folder = try TemporaryFolder()
        #expect(try !#require(NotifySocket(folder.path + "/notify")).send("READY=1"))
    }

    /// Sending does not wait for a manager that does not read.
    @Test func aManagerThatHangs() throws {
        let folder = try TemporaryFolder()
        let listener = try DatagramListener(folder.path + "/notify")
        let socket = try #require(NotifySocket(listener.address))
        let notice = String(repeating: "x", count: 4_096)
        #expect((0..<100_000).contains { _ in !socket.send(notice) })
        #expect(listener.next() == notice)
        #expect(socket.send("READY=1"))
    }

    @Test(arguments: ["", "/", "@", "notify", "vsock:2:1234", "/a\0b"])
    func noAddress(text: String) {
        #expect(NotifySocket(text) == nil)
    }

    /// 108 bytes hold a path with its NUL, or an abstract name with the one before it.
    @Test func longestAddress() {
        #expect(NotifySocket("/" + String(repeating: "a", count: 106)) != nil)
        #expect(NotifySocket("/" + String(repeating: "a", count: 107)) == nil)
        #expect(NotifySocket("@" + String(repeating: "a", count: 107)) != nil)
        #expect(NotifySocket("@" + String(repeating: "a", count: 108)) == nil)
    }
}
