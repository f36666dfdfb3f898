import Core
import StatusProtocol
import StatusRules
import TestSupport
import Testing
import WakuCrypto

/// `V01.md`, section 4.
@Suite("Version 0.1: rules of queries")
struct V01QueryRulesTests {
    private let account = V01Account(of: PrivateKey.generate().publicKey)

    @Test func keysAreAskedAboutOnceAndMustBeHashes() throws {
        let hash = account.keyHash
        var query = V01.Query([hash, V01.KeyHash(of: account.server), hash])
        #expect(V01.QueryRules.registrants(in: query) == [hash, V01.KeyHash(of: account.server)])
        query = try V01.Query(parsing: V01Vectors.recorded.queries.last.map(\.encoded.bytes) ?? [])
        #expect(!query.publicKeys.isEmpty)
        #expect(V01.QueryRules.registrants(in: query).isEmpty)
    }

    @Test func eachEnabledDeviceHasARow() {
        var off = V01Account.device("none")
        off.filters = nil
        let preferences = account.preferences {
            $0.devices = [V01Account.device("a"), V01Account.device("b", isEnabled: false), off, V01Account.device("c")]
        }
        let rows = V01.QueryRules.rows(of: account.keyHash, preferences)
        #expect(rows.map(\.installationID.string) == ["a", "c"])
        #expect(rows.allSatisfy { $0.accessToken == account.accessToken && $0.publicKey == account.keyHash.bytes })
    }

    @Test func anAllowedKeyListReplacesTheToken() {
        let preferences = account.preferences { $0.devices = [V01Account.device("a", allowed: [[1], [2]]), V01Account.device("b")] }
        let rows = V01.QueryRules.rows(of: account.keyHash, preferences)
        #expect(rows.map(\.accessToken) == [AccessToken(""), account.accessToken])
        #expect(rows.map(\.encryptedAccessTokens) == [[[1], [2]], []])
    }

    @Test func withoutARowThereIsNoAnswer() {
        let preferences = account.preferences { $0.devices = [V01Account.device(isEnabled: false)] }
        #expect(V01.QueryRules.answer(V01.QueryRules.rows(of: account.keyHash, preferences)) == nil)
    }

    @Test func anAnswerIsBounded() throws {
        let row = V01.QueryRules.rows(of: account.keyHash, account.preferences())[0]
        #expect(try #require(V01.QueryRules.answer(.init(repeating: row, count: 1_001))).info.count == QueryBudget.rowLimit)
        let list = [[UInt8]](repeating: [UInt8](repeating: 1, count: 1 << 10), count: 1 << 10)
        let large = V01.QueryInfo(
            accessToken: AccessToken(""), installationID: InstallationID("a"), publicKey: [], encryptedAccessTokens: list)
        #expect(try #require(V01.QueryRules.answer([large, large, large, large, large])).info.count == 3)
    }
}
