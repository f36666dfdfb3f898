import StatusProtocol
import Testing
import WakuCrypto

@testable import StatusServer

@Suite struct RecentVersionsTests {
    private func key(_ name: String) -> RegistrationKey {
        RegistrationKey(keyHash: KeyHash(of: PrivateKey.generate().publicKey), installationID: InstallationID(name))
    }

    @Test func olderVersionsChangeNothing() {
        let versions = RecentVersions()
        let phone = key("phone")
        #expect(versions.version(of: phone) == nil)
        versions.note(7, of: phone)
        versions.note(3, of: phone)
        #expect(versions.version(of: phone) == 7)
        versions.note(8, of: phone)
        #expect(versions.version(of: phone) == 8)
    }

    @Test func theOldestAreForgotten() {
        let versions = RecentVersions(capacity: 2)
        let keys = (0..<5).map { key("phone \($0)") }
        for (version, key) in keys.enumerated() { versions.note(UInt64(version + 1), of: key) }
        #expect(keys.map { versions.version(of: $0) } == [nil, nil, 3, 4, 5])
        // Noting a key again makes it recent again, and keeps its highest version.
        versions.note(1, of: keys[2])
        versions.note(9, of: key("another"))
        #expect(versions.version(of: keys[2]) == 3)
    }
}
