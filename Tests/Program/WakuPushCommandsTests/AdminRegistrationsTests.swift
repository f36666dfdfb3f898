import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@Suite(.timeLimit(.minutes(5)))
struct AdminRegistrationsTests {
    private let fixture: AdminFixture
    private let bob: TestClient
    private let hash: String

    init() async throws {
        fixture = try await AdminFixture()
        bob = fixture.bob
        hash = bob.keyHash.hex
    }

    // MARK: List, stats

    @Test func list() async throws {
        let expected = [
            RegistrationRow(bob), RegistrationRow(fixture.bobsOther), RegistrationRow(fixture.carol),
            RegistrationRow(fixture.dave, state: "unregistered", version: 2),
        ]
        #expect(try await fixture.admin("registrations", "list", "--json").json() == expected)
        #expect(
            try await fixture.admin("registrations", "list", "--json", "--limit", "2", "--offset", "1").json() == Array(expected[1...2]))
        #expect(try await fixture.admin("registrations", "list", "--json", "--offset", "4").json() == [RegistrationRow]())

        let text = try await fixture.admin("registrations", "list")
        #expect(text.status == 0)
        #expect(text.errors == "")
        #expect(text.rows.first == ["KEY HASH", "INSTALLATION", "STATE", "VERSION", "CHANGED"])
        let rows = expected.map { ["\($0.keyHash.prefix(16))…", $0.installation, $0.state, String($0.version)] }
        #expect(text.rows.dropFirst().map { Array($0.prefix(4)) } == rows)
    }

    private struct Statistics: Decodable, Equatable {
        let registrants, apn, firebase, webPush, tombstones, waiting: Int
    }

    @Test func stats() async throws {
        let expected = Statistics(registrants: 2, apn: 3, firebase: 0, webPush: 0, tombstones: 1, waiting: 1)
        #expect(try await fixture.admin("registrations", "stats", "--json").json() == expected)
        let text = try await fixture.admin("registrations", "stats")
        #expect(text.field("registrants") == "2")
        #expect(text.field("installations, APN") == "3")
        #expect(text.field("installations, Firebase") == "0")
        #expect(text.field("tombstones") == "1")
        #expect(text.field("notifications waiting") == "1")
    }

    // MARK: Show

    @Test func registrantsByHashPrefixOrPublicKey() async throws {
        let key = bob.identity.publicKey
        let names = [
            hash, "0x" + hash, hash.uppercased(), String(hash.prefix(16)), "0x" + hash.prefix(16), key.hex, "0x" + key.hex,
            hexString(key.compressed), "0x" + hexString(key.compressed),
        ]
        for name in names {
            let shown = try await fixture.admin("registrations", "show", name, "--json")
            #expect(shown.status == 0, "\(name): \(shown.errors)")
            #expect(try shown.json([RegistrationDetail].self).map(\.row) == [RegistrationRow(bob), RegistrationRow(fixture.bobsOther)])
        }
    }

    @Test(arguments: ["show", "remove"])
    func aPrefixOfSeveral(command: String) async throws {
        let refused = try await fixture.admin("registrations", command, String(hash.prefix(1)))
        #expect(refused.status == 64)
        #expect(refused.failure == "several key hashes begin with \(hash.prefix(1)): give more digits")
        #expect(refused.output == "")
    }

    @Test(arguments: ["show", "remove"])
    func aPrefixWithoutRegistrants(command: String) async throws {
        let last: Character = hash.last == "0" ? "1" : "0"
        let unknown = String(hash.dropLast()) + String(last)
        let refused = try await fixture.admin("registrations", command, unknown)
        #expect(refused.status == 65)
        #expect(refused.failure == "no registrant's key hash begins with \(unknown)")
        #expect(try await fixture.admin("registrations", command, PublicKeyText.ofNobody).status == 65)
    }

    private enum PublicKeyText {
        static let ofNobody = "0x" + PrivateKey.generate().publicKey.hex
    }

    @Test func withoutTheKeyNothingIsDecrypted() async throws {
        let details = try await fixture.admin("registrations", "show", hash, "--json").json([RegistrationDetail].self)
        #expect(details.count == 2)
        #expect(details.allSatisfy { $0.opened == nil })
        #expect(try await fixture.admin("registrations", "show", hash).field("APN topic") == nil)
    }

    @Test func tokensAreHiddenWithoutReveal() async throws {
        let json = try await fixture.admin("registrations", "show", hash, "--json", identified: true)
        let opened = try #require(try json.json([RegistrationDetail].self).first?.opened)
        #expect(opened.apnTopic == "im.status.ethereum")
        #expect(opened.enabled)
        #expect(opened.deviceToken == nil)
        #expect(opened.accessToken == nil)

        let text = try await fixture.admin("registrations", "show", hash, identified: true)
        #expect(text.field("APN topic") == "im.status.ethereum")
        #expect(text.field("device token") == "<hidden: --reveal shows it>")
        #expect(text.field("access token") == "<hidden: --reveal shows it>")
        for ended in [json, text] {
            #expect(!ended.output.contains(AdminFixture.deviceToken))
            #expect(!ended.output.contains(bob.accessToken.revealed))
        }
    }

    @Test func revealShowsTokens() async throws {
        let json = try await fixture.admin("registrations", "show", hash, "--json", "--reveal", identified: true)
        let opened = try #require(try json.json([RegistrationDetail].self).first?.opened)
        #expect(opened.deviceToken == AdminFixture.deviceToken)
        #expect(opened.accessToken == bob.accessToken.revealed)

        let text = try await fixture.admin("registrations", "show", hash, "--reveal", identified: true)
        #expect(text.field("device token") == AdminFixture.deviceToken)
        #expect(text.field("access token") == bob.accessToken.revealed)
    }

    @Test func revealNeedsTheRightKey() async throws {
        let without = try await fixture.admin("registrations", "show", hash, "--reveal")
        #expect(without.status == 64)
        #expect(without.failure?.hasPrefix("--identity is missing") == true)
        let other = try KeyFile(in: fixture.folder, "other.key")
        let wrong = try await fixture.admin("registrations", "show", hash, "--reveal", "--identity", other.path)
        #expect(wrong.status == 65)
        #expect(wrong.failure?.contains("belongs to another identity") == true)
        #expect(wrong.output == "")
    }

    // MARK: Remove

    @Test func removeNeedsConfirmation() async throws {
        let before = try await fixture.admin("registrations", "list").output
        let asked = try await fixture.admin("registrations", "remove", hash)
        #expect(asked.status == 0)
        #expect(
            asked.output == """
                would remove \(hash.prefix(16))… installation-1
                would remove \(hash.prefix(16))… installation-2
                Nothing was removed: repeat with --yes.

                """)
        #expect(try await fixture.admin("registrations", "list").output == before)
    }

    @Test func removeOne() async throws {
        let removed = try await fixture.admin("registrations", "remove", hash, "--installation", "installation-2", "--yes")
        #expect(removed.status == 0)
        #expect(removed.output == "removed \(hash.prefix(16))… installation-2\n")
        let rows = try await fixture.admin("registrations", "show", hash, "--json").json([RegistrationDetail].self).map(\.row)
        #expect(rows == [RegistrationRow(bob), RegistrationRow(fixture.bobsOther, state: "unregistered")])
    }

    @Test func removeAll() async throws {
        let removed = try await fixture.admin("registrations", "remove", "0x" + bob.identity.publicKey.hex, "--yes", "--json")
        #expect(try removed.json() == [RegistrationRow(bob), RegistrationRow(fixture.bobsOther)])
        let statistics = try await fixture.admin("registrations", "stats", "--json").json(Statistics.self)
        #expect(statistics == Statistics(registrants: 1, apn: 1, firebase: 0, webPush: 0, tombstones: 3, waiting: 0))

        let again = try await fixture.admin("registrations", "remove", hash, "--yes")
        #expect(again.status == 65)
        #expect(again.failure == "no registration to remove")
    }

    @Test func removeOfAMissingRegistrationFails() async throws {
        let refused = try await fixture.admin("registrations", "remove", hash, "--installation", "installation-3", "--yes")
        #expect(refused.status == 65)
        #expect(try await fixture.admin("registrations", "stats", "--json").json(Statistics.self).apn == 3)
    }
}
