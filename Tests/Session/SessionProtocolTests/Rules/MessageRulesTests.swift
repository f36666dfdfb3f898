@testable import SessionProtocol
import Testing
import WakuCrypto

@Suite struct MessageRulesTests {
    private static let now: Int64 = 1_700_000_000_000

    @Test func reportOfAMonitoredAccountIsAdmitted() throws {
        #expect(throws: Never.self) { try MessageRules.admit(message(storedAt: Self.now - 5), isMonitored: true, at: Self.now) }
    }

    @Test func reportOfAnAccountThatWasNotAskedForIsDropped() throws {
        let message = try message()
        #expect(throws: SessionDropReason.unsolicited) { try MessageRules.admit(message, isMonitored: false, at: Self.now) }
    }

    @Test(arguments: [now, now - 1, 0])
    func expiredMessageIsDropped(expiresAt: Int64) throws {
        let message = try message(expiresAt: expiresAt)
        #expect(throws: SessionDropReason.expired) { try MessageRules.admit(message, isMonitored: true, at: Self.now) }
    }

    @Test(arguments: [0, now - 86_400_000, now, now + 86_400_000, .max])
    func ageCountsFromTheArrivalAndNotFromTheSendersClock(storedAt: Int64) throws {
        let message = try message(storedAt: storedAt, expiresAt: .max)
        #expect(throws: Never.self) { try MessageRules.admit(message, isMonitored: true, at: Self.now) }
        #expect(MessageRules.expiry(of: message, receivedAt: Self.now, ageLimit: 600_000) == Self.now + 600_000)
        #expect(MessageRules.expiry(of: message, receivedAt: Self.now, ageLimit: .max) == .max)
    }

    @Test func nothingIsPostedAfterTheMessageExpires() throws {
        let message = try message(expiresAt: Self.now + 1)
        #expect(MessageRules.expiry(of: message, receivedAt: Self.now, ageLimit: 600_000) == Self.now + 1)
    }

    @Test func deliveryIsNamedBySubscriptionAndHash() {
        let name = MessageRules.deliveryName(rowName: [1, 2], hash: "hash")
        #expect(name == SHA256.hash([1, 2] + Array("hash".utf8)))
        #expect(name != MessageRules.deliveryName(rowName: [1, 3], hash: "hash"))
        #expect(name != MessageRules.deliveryName(rowName: [1, 2], hash: "hasH"))
        let ends = [0, 1, Self.now].map { MessageRules.deliveryName(rowName: [1, 2], hash: "hash", end: $0) }
        #expect(Set(ends + [name]).count == 4)
    }

    private func message(storedAt: Int64 = now, expiresAt: Int64 = now + 1) throws -> NotifyMessage {
        NotifyMessage(
            account: try #require(AccountID([5] + [UInt8](repeating: 7, count: 32))), hash: String(repeating: "h", count: 43),
            namespace: 0, storedAt: storedAt, expiresAt: expiresAt, data: nil)
    }
}
