import Core
import RateLimits
import SessionProtocol
import Testing
import WakuCrypto

@testable import SessionServer

/// Floods of Session's server in virtual time, as `AttackSimulationTests` has them for Status. Requests over HTTP are in ``RequestTurnsTests``, places of
/// an account in `DevicePlacesTests`.
@Suite struct SessionAttackSimulationTests {
    private static let start = Timestamp(rawValue: 1_700_000_000_000_000_000)

    /// A storage server reports 275 messages a second for accounts of its own with 99 devices each: the total of notifications is used up, and messages
    /// of other accounts are notified all the same.
    @Test(arguments: [1, 20]) func notificationsOfFloodedAccountsRefuseNoOthers(accountCount: Int) throws {
        let limits = SessionLimits(.standard)
        let own = try (0..<accountCount).map { _ in try #require(AccountID([5] + randomBytes(32))) }
        let others = try (0..<50).map { _ in try #require(AccountID([5] + randomBytes(32))) }
        var (asked, served, attack) = (0, 0, 0)
        func delivery(_ tick: Int, _ device: Int) -> DeliveryID {
            DeliveryID(hashing: withUnsafeBytes(of: tick * 100 + device, Array.init))
        }
        for tick in 0..<275 * 10 {
            let now = Self.start + .milliseconds(tick * 1_000 / 275)
            for device in 0..<99 {
                let row = Int64(1_000 + tick % accountCount * 100 + device)
                if limits.admits(delivery(tick, device), ofRow: row, of: own[tick % accountCount], at: now) { attack += 1 }
            }
            guard tick % 27 == 5 else { continue }
            asked += 1
            if limits.admits(delivery(tick, 99), ofRow: Int64(asked % 50), of: others[asked % 50], at: now) { served += 1 }
        }
        #expect(served * 100 >= asked * 95, "\(served) of \(asked)")
        // The rate, and the burst.
        let total = try #require(Limits.standard.notifications)
        #expect(attack <= total.count * 10 + total.burst)
    }
}
