import Core
import NodeAPI
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import StatusV01Server

@Suite("Version 0.1: registers that others send again")
struct V01RepeatedRegisterTests {
    @Test("Do not count for the account that signed them", arguments: ["messages-by-sender=3/d", "registrations-by-sender=3/d"])
    func repetitions(limit: String) throws {
        let (server, now) = (PrivateKey.generate(), Timestamp.now())
        var limits = Limits.none
        try limits.set(limit)
        let decoder = V01Decoder(
            identity: server, rules: V01.RegisterRules(server: server.publicKey), ages: RequestRules(maximumAge: .seconds(600)),
            limits: V01Limits(limits))
        let account = V01Account(of: server.publicKey)
        func drop(of message: WakuMessage) -> Counter? {
            do throws(Drop) {
                _ = try decoder.decode(message, at: now)
                return nil
            } catch {
                return error.counter
            }
        }
        let register = account.register(version: 1)
        #expect(drop(of: account.message(register)) == nil)
        // Signed for another server, so that anyone who has seen it can send it here.
        let foreign = V01.Register(account.preferences(), for: PrivateKey.generate().publicKey, signedBy: account.identity)
        let drops = (0..<20).flatMap { _ in [drop(of: account.message(register)), drop(of: account.message(foreign))] }
        #expect(drops.count { $0 == .droppedLimited } > 10)
        #expect(drops.contains(.droppedBadSignature))
        #expect(drop(of: account.message(account.register(version: 2))) == nil)
    }
}
