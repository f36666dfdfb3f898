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
                if limits.admits(delivery(tick, device), ofRow: row, of: own[tick % accountCount], reportedBy: [1], at: now) { attack += 1 }
            }
            guard tick % 27 == 5 else { continue }
            asked += 1
            if limits.admits(delivery(tick, 99), ofRow: Int64(asked % 50), of: others[asked % 50], reportedBy: [2], at: now) { served += 1 }
        }
        #expect(served * 100 >= asked * 95, "\(served) of \(asked)")
        // The rate, and the burst.
        let total = try #require(Limits.standard.notifications)
        #expect(attack <= total.count * 10 + total.burst)
    }

    /// A storage server invents 100 messages a second for an account of its swarm: the messages that another server of the swarm reports are notified all
    /// the same, and so are those of the account that the first one reports no more.
    @Test func aServerThatInventsMessagesForAnAccountUsesUpItsOwnRate() throws {
        let limits = SessionLimits(.standard)
        let account = try #require(AccountID([5] + randomBytes(32)))
        let rate = try #require(Limits.standard.notificationsByTarget)
        var (served, invented) = (0, 0)
        for tick in 0..<100 * 60 {
            let now = Self.start + .milliseconds(tick * 10)
            let delivery = DeliveryID(hashing: withUnsafeBytes(of: tick, Array.init))
            if limits.admits(delivery, ofRow: 1, of: account, reportedBy: [1], at: now) { invented += 1 }
            guard tick % 150 == 0 else { continue }
            let real = DeliveryID(hashing: withUnsafeBytes(of: -1 - tick, Array.init))
            // A report of the message that the first server has no room for does not take it from the second.
            let isFirst = limits.admits(real, ofRow: 1, of: account, reportedBy: [1], at: now)
            if limits.admits(real, ofRow: 1, of: account, reportedBy: [2], at: now) || isFirst { served += 1 }
        }
        #expect(served == 40)
        #expect(invented <= rate.count * 60 + rate.burst)
    }
}
