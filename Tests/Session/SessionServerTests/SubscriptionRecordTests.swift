import SessionProtocol
import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import SessionServer

@Suite struct SubscriptionRecordTests {
    private func record(_ delegation: Delegation, _ account: SessionAccount, namespaces: [Int16]) -> SubscriptionRecord {
        let form = account.subscription(SessionDevice(token: "tök\u{0}en"), namespaces: namespaces, wantsData: false)
        return SubscriptionRecord(form.delegated(delegation))
    }

    private static let delegations: [Delegation] = [
        .none, .subkey(tag: randomBytes(32)),
        SubaccountToken(randomBytes(36)).map { .subaccount($0, signature: Confidential(randomBytes(64))) } ?? .none,
    ]

    @Test(arguments: delegations) func isReadBackAsItWasWritten(delegation: Delegation) throws {
        for account in [try SessionAccount.sessionID(), try .group()] {
            let record = record(delegation, account, namespaces: [-32768, -1, 0, 32767])
            let bytes = record.encoded()
            let read = try SubscriptionRecord(parsing: bytes)
            #expect(read.authority == record.authority)
            #expect(read.namespaces == record.namespaces)
            #expect(read.wantsData == record.wantsData)
            #expect(read.token == record.token)
            #expect(read.monitorEntry.bytes == record.monitorEntry.bytes)
            #expect(try SubscriptionRecord.account(in: bytes) == account.id)
            let keys = [read, record].map { $0.encryptionKey.secret.withBytes { Array($0) } }
            #expect(keys[0] == keys[1])
        }
    }

    @Test func truncatedRecordsAreRefused() throws {
        let record = record(Self.delegations[2], try .sessionID(), namespaces: [1, 2])
        let bytes = record.encoded()
        let tokenByteCount = record.token.value.utf8.count
        for count in 0..<bytes.count - tokenByteCount {
            #expect(throws: (any Error).self) { try SubscriptionRecord(parsing: Array(bytes.prefix(count))) }
        }
        #expect(throws: UnexpectedValue.self) { try SubscriptionRecord.account(in: Array(bytes.prefix(33))) }
        #expect(try SubscriptionRecord.account(in: Array(bytes.prefix(34))) == record.authority.account)
        #expect(throws: UnexpectedValue.self) { try SubscriptionRecord(parsing: [2] + bytes.dropFirst()) }
    }
}
