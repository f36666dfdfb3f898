import Core
import Testing

@testable import CurlClient

@Suite("New connections by address")
struct ConnectionPaceTests {
    private let start = Instant(sinceEpoch: .seconds(1000))

    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    @Test("Names that have not answered share an allowance, which refills; those that have answered are not held up")
    func names() throws {
        let pace = ConnectionPace()
        let (one, other) = (try address("9.9.9.9"), try address("9.9.9.8"))
        pace.worked("https://honest.example", at: one)
        let admitted = (0..<1000).count { pace.admits("https://name\($0).example", to: one, at: start) }
        #expect(admitted == Int(ConnectionPace.burst))
        #expect(pace.admits("https://honest.example", to: one, at: start))
        #expect(pace.admits("https://name1.example", to: other, at: start))
        // Having answered from one address says nothing of another.
        for _ in 0..<Int(ConnectionPace.burst) { _ = pace.admits("https://x.example", to: other, at: start) }
        #expect(!pace.admits("https://honest.example", to: other, at: start))
        // An origin that answered elsewhere shares another allowance than those that never did.
        let elsewhere = (0..<1000).count { _ in pace.admits("https://honest.example", to: other, hasAnswered: true, at: start) }
        #expect(elsewhere == Int(ConnectionPace.burst))
        let later = (0..<1000).count { pace.admits("https://name\($0).example", to: one, at: start + .seconds(2)) }
        #expect(later == Int(2 * ConnectionPace.rate))
    }

    @Test("IPv6 addresses count by /64, and IPv4 addresses alike in all forms")
    func sites() throws {
        #expect(try address("2a00:1:2:3::1").site == address("2a00:1:2:3:ffff::2").site)
        #expect(try address("2a00:1:2:3::1").site != address("2a00:1:2:4::1").site)
        #expect(try address("::ffff:9.9.9.9").site == address("9.9.9.9").site)
        #expect(try address("9.9.9.9").site == address("9.9.9.9"))
    }
}
