import Core
import StatusRules
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

/// `PROTOCOL.md`, section 5.
@Suite struct QueryRulesTests {
    private static let server = PrivateKey.generate().publicKey
    private static let client = TestClient(of: server)
    private let rules = QueryRules(server: server)

    private func stored(_ change: (inout PushNotificationRegistration) -> Void = { _ in }) -> StoredRegistration {
        StoredRegistration(
            key: Self.client.key, registration: Self.client.registration(version: 3, change), storedAt: Timestamp(rawValue: 1))
    }

    @Test func aRowHasTheFieldsThatSendersNeed() throws {
        let stored = stored()
        let answer = try #require(rules.answer([stored], messageID: [1, 2]))
        let row = PushNotificationQueryInfo(
            accessToken: Self.client.accessToken, installationID: Self.client.installationID, publicKey: Self.client.keyHash.bytes,
            allowedKeyList: [], grant: stored.registration.grant, version: 3, serverPublicKey: Self.server.compressed)
        #expect(answer == PushNotificationQueryResponse(info: [row], messageID: [1, 2], success: true))
    }

    struct Case: Sendable {
        let list: [[UInt8]]
        let contactsOnly: Bool
        var isListed: Bool { contactsOnly || !list.isEmpty }
    }

    @Test(arguments: [
        Case(list: [], contactsOnly: false), Case(list: [], contactsOnly: true), Case(list: [[1], [2]], contactsOnly: false),
        Case(list: [[1]], contactsOnly: true),
    ])
    func thereIsTheTokenOrTheListNeverBoth(_ example: Case) throws {
        let stored = stored {
            $0.allowedKeyList = example.list
            $0.allowFromContactsOnly = example.contactsOnly
        }
        let row = try #require(rules.answer([stored], messageID: [1])?.info.first)
        #expect(row.accessToken == (example.isListed ? AccessToken("") : Self.client.accessToken))
        #expect(row.allowedKeyList == (example.isListed ? example.list : []))
    }

    @Test func nothingRegisteredIsNotAnswered() {
        #expect(rules.answer([], messageID: [1]) == nil)
    }

    @Test func everyRegistrationHasARowAlsoOneThatIsNotEnabled() throws {
        let answer = try #require(rules.answer([stored(), stored { $0.enabled = false }], messageID: [1]))
        #expect(answer.info.count == 2)
    }

    @Test func eachRegistrantIsLookedUpOnceInTheOrderOfTheQuery() throws {
        let hashes = (0..<3).map { _ in KeyHash(of: PrivateKey.generate().publicKey) }
        let query = PushNotificationQuery(publicKeys: [hashes[2], hashes[0], hashes[2], hashes[1], hashes[0]])
        #expect(rules.registrants(in: query) == [hashes[2], hashes[0], hashes[1]])
    }

    @Test func keysOfAnotherLengthMatchNoRegistrant() throws {
        let hash = KeyHash(of: PrivateKey.generate().publicKey)
        // 63, 65 and 0 bytes, and a valid hash.
        let fields = [Array(hash.bytes.dropLast()), hash.bytes + [0], [], hash.bytes].map { [0x0a, UInt8($0.count)] + $0 }
        let query = try PushNotificationQuery(parsing: fields.flatMap { $0 })
        #expect(query.publicKeys.count == 4)
        #expect(rules.registrants(in: query) == [hash])
    }

    @Test func aBudgetAdmitsRowsUpToItsBytesAndThenNoMore() throws {
        let large = stored { $0.allowedKeyList = Array(repeating: [UInt8](repeating: 1, count: 1000), count: 1700) }
        let small = stored { _ in }
        var budget = QueryBudget()
        let admitted = [large, large, large, small].map { budget.admits(rowByteCount: QueryBudget.byteCount(of: $0)) }
        #expect(admitted == [true, true, false, false])
        #expect(budget.isSpent)
        let answer = try #require(rules.answer([large, large], messageID: [1]))
        #expect(answer.encoded().count <= QueryBudget.byteLimit)
    }

    @Test func aBudgetAdmitsTheFirstRowWhateverItsSizeAndNoMoreRowsThanItsLimit() {
        let huge = stored { $0.allowedKeyList = Array(repeating: [UInt8](repeating: 1, count: 1000), count: 5000) }
        var budget = QueryBudget()
        let admitted = [huge, huge].map { budget.admits(rowByteCount: QueryBudget.byteCount(of: $0)) }
        #expect(admitted == [true, false])
        var rows = QueryBudget()
        let small = stored { _ in }
        let count = (0...QueryBudget.rowLimit).count { _ in rows.admits(rowByteCount: QueryBudget.byteCount(of: small)) }
        #expect(count == QueryBudget.rowLimit)
    }
}
