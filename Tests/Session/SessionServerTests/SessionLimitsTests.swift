import Core
import NodeAPI
import NodeMetrics
import RateLimits
import SessionProtocol
import Synchronization
import Testing
import WakuCrypto

@testable import SessionServer

@Suite("Session: limits that are counted") struct SessionLimitsTests {
    private let now = Timestamp(rawValue: 1_700_000_000_000_000_000)

    /// The refusals under one limit alone, of the lowest value.
    private func refusals(under name: String) throws -> Set<RateLimitTable.Refusal> {
        var lowest = Limits.none
        do { try lowest.set("\(name)=1/d") } catch { try lowest.set("\(name)=1") }
        let limits = SessionLimits(lowest)
        let refused = Mutex<Set<RateLimitTable.Refusal>>([])
        limits.limiter.reportRefusals { limit, _ in refused.withLock { _ = $0.insert(limit) } }
        limits.limiter.measured(storeByteCount: 2 << 20)
        let account = try #require(AccountID([5] + randomBytes(32)))
        for number in 0..<100 as Range<UInt8> {
            _ = limits.admitsNew([number], from: SenderNetwork(nil), at: now)
            _ = limits.admits(DeliveryID(hashing: [number]), ofRow: 1, of: account, reportedBy: [], at: now)
        }
        return refused.withLock(\.self)
    }

    @Test("Each limit that refuses a subscription or a notification has a counter")
    func counted() throws {
        var refused: Set<RateLimitTable.Refusal> = []
        for (name, _) in Limits.none.settings { refused.formUnion(try refusals(under: name)) }
        #expect(refused == [.registrationCount, .storeMiB, .newRegistrations, .notificationsByTarget, .notifications])
        #expect(refused.filter { SessionLimits.counters?[$0] == nil } == [])
    }

    @Test("Refused notifications are among the losses")
    func losses() throws {
        let sodium = try Sodium.load()
        let key = try #require(OnionKey(SecretBytes.random(count: 32), sodium: sodium))
        let session = SessionPush(
            SessionPush.Configuration(
                httpAddress: SocketAddress(host: "127.0.0.1", port: 0), onionKey: key, sodium: sodium, makeMonitor: FakeMonitor().make))
        for limit in [RateLimitTable.Refusal.notifications, .notificationsByTarget] {
            let counter = try #require(SessionLimits.counters?[limit])
            #expect(session.losses.contains(counter))
        }
    }
}
